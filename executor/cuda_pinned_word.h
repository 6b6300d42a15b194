// A number in host memory that a device writes and the host reads while work
// runs.
//
// Thread safety: get() goes to the device; load() is atomic.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include "executor/cuda_error.h"
#include "scheduler_core/result.h"

namespace rrfp {

class CudaPinnedWord {
 public:
  /// Zero at first.
  static Result<CudaPinnedWord> create() {
    void* memory = nullptr;
    const cudaError_t code = cudaHostAlloc(&memory, sizeof(std::uint32_t), cudaHostAllocMapped);
    if (code != cudaSuccess) return cuda_error("cudaHostAlloc", code);
    CudaPinnedWord made;
    made.word_ = new (memory) std::uint32_t(0);
    return made;
  }
  CudaPinnedWord() = default;  ///< none
  CudaPinnedWord(CudaPinnedWord&& other) noexcept : word_(std::exchange(other.word_, nullptr)) {}
  CudaPinnedWord& operator=(CudaPinnedWord&& other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~CudaPinnedWord() {
    if (word_ != nullptr) cudaFreeHost(word_);
  }

  bool exists() const { return word_ != nullptr; }
  /// The same address on the host and on the device.
  std::uint32_t* get() const { return word_; }
  std::uint32_t load() const {
    return std::atomic_ref<std::uint32_t>(*word_).load(std::memory_order_acquire);
  }

 private:
  std::uint32_t* word_ = nullptr;
};

}  // namespace rrfp
