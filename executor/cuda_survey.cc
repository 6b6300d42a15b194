#include "executor/cuda_survey.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <string>

namespace rrfp {

namespace {

// As NVIDIA writes its versions: 12040 is 12.4.
std::string dotted(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string describe_device(int device) {
  cudaDeviceProp properties{};
  const cudaError_t code = cudaGetDeviceProperties(&properties, device);
  const std::string number = "device " + std::to_string(device) + ": ";
  if (code != cudaSuccess) return number + cudaGetErrorString(code);
  return number + properties.name + ", compute capability " + std::to_string(properties.major) +
         "." + std::to_string(properties.minor) + ", " +
         std::to_string(properties.multiProcessorCount) + " SMs, " +
         std::to_string(properties.totalGlobalMem >> 30) + " GiB";
}

}  // namespace

Result<int> count_cuda_devices() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    return Error{"no CUDA device: there is no NVIDIA driver here (libcuda.so.1)"};
  }
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorInsufficientDriver) {
    return Error{"no CUDA device: the driver is for CUDA " + dotted(driver) +
                 ", too old for a module built with " + dotted(CUDART_VERSION)};
  }
  if (code == cudaErrorNoDevice || (code == cudaSuccess && count == 0)) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return Error{"no CUDA device: the driver sees none" +
                 (visible == nullptr ? std::string()
                                     : " (CUDA_VISIBLE_DEVICES=" + std::string(visible) + ")")};
  }
  if (code != cudaSuccess) return Error{std::string("no CUDA device: ") + cudaGetErrorString(code)};
  return count;
}

CudaSurvey survey_cuda() {
  CudaSurvey survey;
  const Result<int> count = count_cuda_devices();
  if (!count.ok()) {
    survey.missing.push_back(count.error().message);
    return survey;
  }
  for (int device = 0; device < *count; ++device) {
    survey.devices.push_back(describe_device(device));
  }
  return survey;
}

}  // namespace rrfp
