// Cuts the model over the stages of a program, whatever graph they form.
//
// A root of the graph turns bytes into the stream; the root with the highest
// number is the decoder's, every other is an encoder's. A stage's stream is the
// sequences of all roots that lead to it, one after the other, ascending, so
// that the decoder's comes last. Where a stage has several predecessors, each
// brings the sequences that it has; a sequence that several bring is added up.
// Stages that the decoder's root does not lead to see their whole sequence, all
// others only what came before.
//
// The blocks are shared out in the order of stages, as evenly as it goes; the
// one stage without a successor is the last and has the loss.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <vector>

#include "executor/model_spec.h"
#include "executor/model_tensor.h"
#include "scheduler_core/program.h"

namespace rrfp {

struct StageCut {
  int stage = 0;
  int root = -1;                          ///< number among the roots, decoder's 0; -1: not a root
  std::vector<int> roots;                 ///< whose sequences make up the stream, in its order
  std::vector<std::vector<int>> brought;  ///< by predecessor: their roots
  bool causal = true;
  bool last = false;
  int first_block = 0;
  int blocks = 0;
};

/// By stage. The error says why the program cannot be trained.
Result<std::vector<StageCut>> cut_model(const ModelSpec& spec, const Program& program);

/// Rows of a stream that has the sequences of `roots`; lengths are by root.
int rows_of(std::span<const int> roots, std::span<const int> lengths);

/// The stream of a stage from what its predecessors sent, in their order. The
/// error names what was sent in the wrong shape.
Result<Matrix> join(const StageCut& cut, std::span<const int> lengths,
                    std::span<const Matrix> activations);

/// The part of a stream's gradient that belongs to one predecessor.
Matrix gradient_for(const StageCut& cut, std::span<const int> lengths, const Matrix& gradient,
                    std::size_t predecessor);

}  // namespace rrfp
