// One stage of the model on one lane's device, see model_stage.h: the same
// weights, the same passes, in single precision.
//
// What a microbatch keeps lies in two blocks: one from F to I, one from F to W,
// whose second half is written in I. Both are taken at F, so that I never waits
// for memory: that is what stash_bytes() counts.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/cuda_model_block.h"
#include "executor/cuda_model_ends.h"
#include "executor/model_cut.h"
#include "executor/training_case.h"

namespace rrfp {

/// A microbatch's bytes on the device.
struct CudaSample {
  const std::uint8_t* tokens = nullptr;   ///< of the stage's root, where it is one
  const std::uint8_t* targets = nullptr;  ///< of the last stage
};

class CudaStage {
 public:
  struct Stash {
    CudaEmbedding::Stash embedding;
    std::vector<CudaBlock::Stash> blocks;
    CudaHead::Stash head;
  };

  /// `lane`'s share of the weights, as Stage draws them.
  static Result<std::unique_ptr<CudaStage>> create(const ModelSpec& spec, const StageCut& cut,
                                                   int lane, CudaCompute& compute);

  const StageCut& cut() const { return cut_; }
  const CudaParameters& parameters() const { return parameters_; }

  /// `lengths` by root.
  static Stash lay_out(const ModelSpec& spec, const StageCut& cut, std::span<const int> lengths,
                       CudaStashCarvers& carvers);

  /// From the scratch's `stream`, where the activations of the predecessors
  /// have been joined (a root fills it), to the same, which goes to every
  /// successor. The last stage writes its loss to pinned memory.
  void forward(const CudaPass& pass, const CudaSample& sample, const Stash& stash,
               double* loss) const;
  /// From the scratch's `gradient`, the sum of what the successors sent (the
  /// last stage fills it), to the same.
  void input_gradient(const CudaPass& pass, const CudaSample& sample, float scale,
                      const Stash& stash) const;
  /// Adds into the gradients of the parameters.
  void weight_gradient(CudaCompute& compute, const CudaSample& sample, const Stash& stash) const;

 private:
  explicit CudaStage(const StageCut& cut) : cut_(cut) {}
  void make_layers(const ModelSpec& spec);

  StageCut cut_;
  CudaParameters parameters_;
  std::optional<CudaEmbedding> embedding_;
  std::vector<CudaBlock> blocks_;
  std::optional<CudaHead> head_;
};

/// What lay_out() takes for a microbatch of these lengths, for schedulers; any
/// lane's. Needs no device.
StashBytes cuda_stash_bytes(const ModelSpec& spec, const StageCut& cut,
                            std::span<const int> lengths);

}  // namespace rrfp
