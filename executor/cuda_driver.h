// The driver functions that are used, looked up while the program runs: the
// module is linked to the static runtime alone, and loads without a driver.
// What a driver does not have is null, and something else is done in its place.
//
// Thread safety: immutable once made; share freely.
#pragma once

#include <cuda.h>

// Streams of green contexts came with CUDA 12.5.
#define RRFP_CUDA_GREEN_CONTEXTS (CUDA_VERSION >= 12050)

namespace rrfp {

struct CudaDriver {
  /// A stream writes a number to memory when it gets there.
  decltype(&cuStreamWriteValue32) write_value = nullptr;
  decltype(&cuGetErrorString) error_string = nullptr;

#if RRFP_CUDA_GREEN_CONTEXTS
  // Green contexts: streams that are confined to some of the SMs.
  decltype(&cuDeviceGetDevResource) get_resource = nullptr;
  decltype(&cuDevSmResourceSplitByCount) split_sms = nullptr;
  decltype(&cuDevResourceGenerateDesc) describe_resource = nullptr;
  decltype(&cuGreenCtxCreate) create_context = nullptr;
  decltype(&cuGreenCtxDestroy) destroy_context = nullptr;
  decltype(&cuGreenCtxStreamCreate) create_stream = nullptr;

  bool has_green_contexts() const {
    return get_resource != nullptr && split_sms != nullptr && describe_resource != nullptr &&
           create_context != nullptr && destroy_context != nullptr && create_stream != nullptr;
  }
#endif
};

/// Of this process, looked up at the first call. REQUIRES: a device.
const CudaDriver& cuda_driver();

}  // namespace rrfp
