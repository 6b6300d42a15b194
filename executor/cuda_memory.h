// Memory of a device, and pinned memory of the host, with an owner.
//
// Thread safety: none; plain owners.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <utility>

#include "executor/cuda_error.h"
#include "scheduler_core/result.h"

namespace rrfp {

class CudaMemory {
 public:
  /// Of the current device. The error names the device, what is needed and what
  /// is free, and what needs less: `remedy`.
  static Result<CudaMemory> create(std::size_t bytes, const char* purpose,
                                   const char* remedy = "fewer ranks on this GPU need less");
  CudaMemory() = default;  ///< none
  CudaMemory(CudaMemory&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  CudaMemory& operator=(CudaMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~CudaMemory() {
    if (memory_ != nullptr) cudaFree(memory_);
  }

  std::byte* data() const { return static_cast<std::byte*>(memory_); }
  std::size_t bytes() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// What copies between host and device go through, and what kernels tell.
class CudaPinnedMemory {
 public:
  static Result<CudaPinnedMemory> create(std::size_t bytes) {
    CudaPinnedMemory made;
    if (bytes == 0) return made;
    const cudaError_t code = cudaHostAlloc(&made.memory_, bytes, cudaHostAllocMapped);
    if (code != cudaSuccess) {
      made.memory_ = nullptr;
      return cuda_error("cudaHostAlloc of " + std::to_string(bytes) + " bytes", code);
    }
    return made;
  }
  CudaPinnedMemory() = default;  ///< none
  CudaPinnedMemory(CudaPinnedMemory&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)) {}
  CudaPinnedMemory& operator=(CudaPinnedMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~CudaPinnedMemory() {
    if (memory_ != nullptr) cudaFreeHost(memory_);
  }

  /// The same address on the host and on the device.
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
};

}  // namespace rrfp
