// One stage of the model on one worker: the embedding where it is a root, its
// blocks, and the loss where it is the last.
//
// A microbatch's forward fills a stash, its input gradient turns the stash into
// what the weight gradient needs and frees the rest, and its weight gradient
// adds into the parameters' gradients and frees everything. The passes of
// different microbatches may come in any order; the order of weight gradients
// is that in which they are summed.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/model_block.h"
#include "executor/model_cut.h"
#include "executor/model_embedding.h"
#include "executor/model_loss.h"
#include "executor/training_data.h"

namespace rrfp {

class Stage {
 public:
  struct Stash {
    Embedding::Stash embedding;
    std::vector<Block::Stash> blocks;
    Head::Stash head;
    Real loss = 0;  ///< of the last stage: the sum over its targets
    Eigen::Index rows = 0;

    /// Of tensors.
    std::int64_t bytes() const;
  };

  Stage(const ModelSpec& spec, const StageCut& cut, const HeldLanes& held);

  const StageCut& cut() const { return cut_; }

  /// The stream behind the blocks, which every successor gets; the last stage
  /// puts the loss into the stash as well. `activations`: by predecessor. The
  /// error says what came in the wrong shape.
  Result<Matrix> forward(const Sample& sample, std::span<const Matrix> activations, LaneSum& lanes,
                         Stash& stash) const;
  /// The gradient of the stream before the blocks (see gradient_for), of
  /// `scale` times the loss. `gradients`: by successor, summed in that order.
  Result<Matrix> input_gradient(std::span<const Matrix> gradients, Real scale, LaneSum& lanes,
                                Stash& stash) const;
  /// Adds into the gradients of the parameters.
  void weight_gradient(Stash& stash);

  /// Bytes of a stash from F to I and from I to W. `lengths` by root.
  std::int64_t forward_bytes(std::span<const int> lengths) const;
  std::int64_t weight_bytes(std::span<const int> lengths) const;

  ParameterList parameters();

 private:
  StageCut cut_;
  std::optional<Embedding> embedding_;
  std::vector<Block> blocks_;
  std::optional<Head> head_;
};

}  // namespace rrfp
