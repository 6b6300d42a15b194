// What the CUDA module offers to the program that opens it. No CUDA header is
// needed to include this, and nothing is linked to CUDA: a program that is
// linked to libcuda does not even start where there is no driver.
#pragma once

#include <string>
#include <vector>

namespace rrfp {

/// What this machine has, for people.
struct CudaSurvey {
  std::vector<std::string> devices;  ///< one line each
  std::vector<std::string> missing;  ///< why there is no more, one line per reason
};

/// What the module exports, under the name kCudaModuleSymbol.
struct CudaModule {
  int version = 0;
  CudaSurvey (*survey)() = nullptr;
};
inline constexpr int kCudaModuleVersion = 1;
inline constexpr const char* kCudaModuleSymbol = "rrfp_cuda_module";

}  // namespace rrfp
