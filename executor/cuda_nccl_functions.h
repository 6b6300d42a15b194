// The functions of NCCL that are used. The library is opened when processes
// connect their devices, and not before: opening it takes long, and all else
// works where it is missing.
//
// Thread safety: immutable once loaded; share freely.
#pragma once

#include <nccl.h>

#include <string>

#include "scheduler_core/result.h"

namespace rrfp {

struct CudaNcclFunctions {
  decltype(&ncclGetVersion) version = nullptr;
  decltype(&ncclGetUniqueId) unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init = nullptr;
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclGetLastError) last_error = nullptr;
};

/// Whether NCCL took a call of a communicator that does not block: it is done, or
/// will be.
inline bool is_accepted(ncclResult_t code) { return code == ncclSuccess || code == ncclInProgress; }

/// The oldest that has all of them, and finalizes as is done here.
inline constexpr int kOldestNccl = NCCL_VERSION(2, 20, 0);
/// From this one on, aborts in a group are one abort of all.
inline constexpr int kOldestWithGroupedAbort = NCCL_VERSION(2, 22, 0);

/// As NCCL writes them: 22809 is 2.28.9.
inline std::string nccl_version_text(int version) {
  return std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// Of the library on the loader's path, or of the double. The error says where
/// it was looked for, or that it is too old.
Result<CudaNcclFunctions> load_cuda_nccl();

}  // namespace rrfp
