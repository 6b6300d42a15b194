// Errors of the CUDA runtime as values: the call, and what the library says.
//
// Thread safety: pure functions.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "scheduler_core/result.h"

namespace rrfp {

/// "cudaMalloc: out of memory".
inline Error cuda_error(const std::string& call, cudaError_t code) {
  return Error{call + ": " + cudaGetErrorString(code)};
}

/// REQUIRES of `call`: a name that a reader finds in NVIDIA's documentation.
inline Result<void> check_cuda(const char* call, cudaError_t code) {
  if (code == cudaSuccess) return {};
  return cuda_error(call, code);
}

}  // namespace rrfp
