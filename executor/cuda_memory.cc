#include "executor/cuda_memory.h"

namespace rrfp {

namespace {

std::string in_words(std::size_t bytes) {
  constexpr std::size_t kMegabyte = 1'000'000;
  if (bytes < kMegabyte) return std::to_string(bytes) + " bytes";
  return std::to_string(bytes / kMegabyte + (bytes % kMegabyte >= kMegabyte / 2 ? 1 : 0)) + " MB";
}

// Of the current device, which has just refused.
std::string what_is_free() {
  std::size_t left = 0;
  std::size_t all = 0;
  if (cudaMemGetInfo(&left, &all) != cudaSuccess) return "it does not say how much is free";
  return in_words(left) + " of " + in_words(all) + " are free";
}

}  // namespace

Result<CudaMemory> CudaMemory::create(std::size_t bytes, const char* purpose, const char* remedy) {
  CudaMemory made;
  if (bytes == 0) return made;
  const cudaError_t code = cudaMalloc(&made.memory_, bytes);
  if (code == cudaSuccess) {
    made.bytes_ = bytes;
    return made;
  }
  made.memory_ = nullptr;
  int device = 0;
  cudaGetDevice(&device);
  return Error{"device " + std::to_string(device) + " has no room for " + purpose + ": " +
               in_words(bytes) + " are needed, " + what_is_free() +
               " (cudaMalloc: " + cudaGetErrorString(code) + "); " + remedy};
}

}  // namespace rrfp
