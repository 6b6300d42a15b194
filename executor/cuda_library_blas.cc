// cuBLAS as it is installed, or as it comes with Python's packages.
#include <cuda_runtime_api.h>

#include <string>

#include "executor/cuda_blas_functions.h"
#include "executor/cuda_library.h"

namespace rrfp {

Result<CudaBlasFunctions> load_cuda_blas() {
  const std::string name = "libcublas.so." + std::to_string(CUDART_VERSION / 1000);
  const Result<void*> library = open_library(name, "training on a GPU needs cuBLAS");
  if (!library.ok()) return library.error();
  CudaBlasFunctions found;
  const bool all = look_up(*library, "cublasCreate_v2", found.create) &&
                   look_up(*library, "cublasDestroy_v2", found.destroy) &&
                   look_up(*library, "cublasSetStream_v2", found.set_stream) &&
                   look_up(*library, "cublasSetWorkspace_v2", found.set_workspace) &&
                   look_up(*library, "cublasSetMathMode", found.set_math_mode) &&
                   look_up(*library, "cublasSgemm_v2", found.product) &&
                   look_up(*library, "cublasSgemmStridedBatched", found.products) &&
                   look_up(*library, "cublasGetStatusString", found.status_text);
  if (!all) return Error{name + ": " + std::string(dlerror())};
  return found;
}

}  // namespace rrfp
