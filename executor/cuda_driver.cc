#include "executor/cuda_driver.h"

#include <cuda_runtime_api.h>

namespace rrfp {

namespace {

// The function in the form that this toolkit's headers declare it in.
template <typename Function>
void look_up(const char* name, Function& to) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &found, CUDART_VERSION, cudaEnableDefault, &status);
#else
  const cudaError_t code = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &status);
#endif
  if (code == cudaSuccess && status == cudaDriverEntryPointSuccess) {
    to = reinterpret_cast<Function>(found);
  } else {
    static_cast<void>(cudaGetLastError());  // it is not an error, and must not show up as one later
  }
}

CudaDriver look_up_all() {
  CudaDriver driver;
  look_up("cuStreamWriteValue32", driver.write_value);
  look_up("cuGetErrorString", driver.error_string);
#if RRFP_CUDA_GREEN_CONTEXTS
  look_up("cuDeviceGetDevResource", driver.get_resource);
  look_up("cuDevSmResourceSplitByCount", driver.split_sms);
  look_up("cuDevResourceGenerateDesc", driver.describe_resource);
  look_up("cuGreenCtxCreate", driver.create_context);
  look_up("cuGreenCtxDestroy", driver.destroy_context);
  look_up("cuGreenCtxStreamCreate", driver.create_stream);
#endif
  return driver;
}

}  // namespace

const CudaDriver& cuda_driver() {
  static const CudaDriver driver = look_up_all();
  return driver;
}

}  // namespace rrfp
