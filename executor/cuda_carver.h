// Lays tensors out in memory, one behind the other. The same code lays them out
// in no memory first, to learn how much they need.
//
// Thread safety: plain values.
#pragma once

#include "executor/cuda_arena.h"
#include "executor/cuda_compute.h"

namespace rrfp {

class CudaCarver {
 public:
  CudaCarver() = default;  ///< only measures; what it gives out is null
  explicit CudaCarver(std::byte* memory) : memory_(memory) {}

  float* numbers(std::size_t count) {
    float* const given = memory_ == nullptr ? nullptr : reinterpret_cast<float*>(memory_ + bytes_);
    bytes_ += CudaArena::rounded(count * sizeof(float));
    return given;
  }
  float* numbers(int count) { return numbers(static_cast<std::size_t>(count)); }
  CudaMatrix matrix(int rows, int columns) {
    return CudaMatrix::dense(numbers(TensorShape{rows, columns}.size()), rows, columns);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Where the tensors of a microbatch's stash lie, by how long they are held.
struct CudaStashCarvers {
  CudaCarver until_input;   ///< from F to I
  CudaCarver until_weight;  ///< from F to W
};

}  // namespace rrfp
