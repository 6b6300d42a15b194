// The bytes of an iteration's microbatches on a device: tokens and targets.
//
// Not thread safe.
#pragma once

#include <span>
#include <vector>

#include "executor/cuda_model_stage.h"
#include "executor/training_data.h"

namespace rrfp {

class CudaSamples {
 public:
  /// By position, in place of those before. Returns once they are there.
  Result<void> upload(std::vector<Sample> samples, CudaCompute& compute);

  /// By root.
  std::span<const int> lengths(int microbatch) const {
    return samples_[static_cast<std::size_t>(microbatch)].lengths;
  }
  /// For a stage that is the root `root`; -1: it is none.
  CudaSample sample(int microbatch, int root) const;

 private:
  Result<void> reserve(std::size_t bytes);

  std::vector<Sample> samples_;
  std::vector<std::size_t> begin_;  // of a microbatch's bytes: tokens root by root, then targets
  CudaMemory memory_;
  CudaPinnedMemory staging_;  // as large
};

}  // namespace rrfp
