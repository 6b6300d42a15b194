// The functions of cuBLAS that are used. The library is opened when something
// is trained, and not before: opening it takes long, and all else works where
// it is missing.
//
// Thread safety: immutable once loaded; share freely.
#pragma once

#include <cublas_v2.h>

#include "scheduler_core/result.h"

namespace rrfp {

struct CudaBlasFunctions {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasSgemm_v2) product = nullptr;
  decltype(&cublasSgemmStridedBatched) products = nullptr;
  decltype(&cublasGetStatusString) status_text = nullptr;
};

/// Of the library on the loader's path, or of the double. The error says where
/// it was looked for.
Result<CudaBlasFunctions> load_cuda_blas();

}  // namespace rrfp
