// The training model on a device, held against the CPU's: what every stage
// gives out, the gradient of its input, those of its weights, and the weights
// after a step. The CPU's is in double precision, and is itself held against
// finite differences.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "executor/cuda_model_stage.h"
#include "executor/model_stage.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// The largest |found - expected| / (1 + |expected|). Infinite where shapes
/// differ, where a number is none, and where all that is expected is 0, which
/// would prove nothing.
Real largest_deviation(const Matrix& found, const Matrix& expected);

/// That of sums of some hundred numbers of single precision.
inline constexpr Real kMostDeviation = 2e-5;

struct Deviation {
  std::string of;
  Real largest = 0;
};

/// Enqueues, and waits.
Result<Matrix> fetch(const CudaMatrix& from, CudaCompute& compute);

class CudaModelComparison {
 public:
  /// The whole model, cut into a chain of `stages`. `compute` outlives it.
  static Result<std::unique_ptr<CudaModelComparison>> create(const ModelSpec& spec, int stages,
                                                             CudaCompute& compute);

  /// F, I and W of all stages for one microbatch, on both; the loss counts
  /// `scale` times. Weight gradients add up over microbatches.
  Result<std::vector<Deviation>> pass(int length, Real scale);
  /// A step of the optimizer; gradients are 0 behind it.
  Result<std::vector<Deviation>> step(const OptimizerSpec& optimizer);

 private:
  struct Pair {
    Pair(const ModelSpec& spec, const StageCut& cut) : on_cpu(spec, cut, {0, spec.lanes}) {}
    Stage on_cpu;
    Stage::Stash kept;
    std::unique_ptr<CudaStage> on_device;
    CudaMemory until_input;
    CudaMemory until_weight;
    CudaStage::Stash stash;
  };

  CudaModelComparison(const ModelSpec& spec, CudaCompute& compute)
      : spec_(spec), compute_(compute) {}
  Result<void> upload(const Sample& sample);
  Result<void> make_room(const std::vector<int>& lengths);
  Result<void> forward(const CudaPass& pass, const Sample& sample);
  Result<void> backward(const CudaPass& pass, Real scale);
  Result<void> compare_gradients();
  Result<void> compare(const std::string& of, const CudaMatrix& found, const Matrix& expected);

  const ModelSpec spec_;
  CudaCompute& compute_;
  std::vector<std::unique_ptr<Pair>> stages_;
  CudaMemory scratch_;
  CudaMemory bytes_;  // of the sample
  CudaPinnedMemory loss_;
  CudaSample sample_;
  CudaLaneSum device_lanes_;  // there is one lane
  HeldLaneSum cpu_lanes_;
  std::vector<Deviation> deviations_;
};

}  // namespace rrfp
