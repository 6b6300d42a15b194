// The functions of NCCL that are used, over the double's streams: to come.
#include "executor/cuda_nccl_functions.h"

namespace rrfp {

Result<CudaNcclFunctions> load_cuda_nccl() {
  return Error{"the double of a device has no NCCL yet"};
}

}  // namespace rrfp
