// NCCL as it is installed, or as it comes with Python's packages.
#include <string>

#include "executor/cuda_library.h"
#include "executor/cuda_nccl_functions.h"

namespace rrfp {

Result<CudaNcclFunctions> load_cuda_nccl() {
  const std::string name = "libnccl.so." + std::to_string(NCCL_MAJOR);
  const Result<void*> library = open_library(name, "several processes with a GPU each need NCCL");
  if (!library.ok()) return library.error();
  CudaNcclFunctions found;
  const bool all = look_up(*library, "ncclGetVersion", found.version) &&
                   look_up(*library, "ncclGetUniqueId", found.unique_id) &&
                   look_up(*library, "ncclCommInitRankConfig", found.init) &&
                   look_up(*library, "ncclCommGetAsyncError", found.async_error) &&
                   look_up(*library, "ncclCommFinalize", found.finalize) &&
                   look_up(*library, "ncclCommDestroy", found.destroy) &&
                   look_up(*library, "ncclCommAbort", found.abort) &&
                   look_up(*library, "ncclSend", found.send) &&
                   look_up(*library, "ncclRecv", found.receive) &&
                   look_up(*library, "ncclAllGather", found.all_gather) &&
                   look_up(*library, "ncclGroupStart", found.group_start) &&
                   look_up(*library, "ncclGroupEnd", found.group_end) &&
                   look_up(*library, "ncclGetErrorString", found.error_string) &&
                   look_up(*library, "ncclGetLastError", found.last_error);
  if (!all) return Error{name + ": " + std::string(dlerror())};
  int version = 0;
  if (found.version(&version) != ncclSuccess || version < kOldestNccl) {
    return Error{name + " is of version " + std::to_string(version) +
                 " (as NCCL writes it); 2.20 or later is needed"};
  }
  return found;
}

}  // namespace rrfp
