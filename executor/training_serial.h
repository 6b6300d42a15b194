// The reference that every run is held against: the same model, one task after
// the other on one thread, microbatch by microbatch, with nothing between the
// stages but a function call.
//
// Sums are made in the order that a run with ordered accumulation promises:
// partial products by lane, weight gradients by microbatch (as arranged),
// gradients by replica. Then weights and losses are equal bit for bit.
//
// Thread safety: pure function.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "executor/model_optimizer.h"
#include "executor/model_spec.h"
#include "executor/training_data.h"
#include "scheduler_core/program.h"

namespace rrfp {

struct TrainingSpec {
  ModelSpec model;
  OptimizerSpec optimizer;
  DataSpec data;
};

struct Training {
  std::vector<Real> loss;                 ///< by step: the mean over its targets
  std::map<std::string, Matrix> weights;  ///< after the last step, by name
};

/// [step][replica]: the given index at each position; an empty list is the
/// given order. Steps and replicas are counted here.
using Arrangements = std::vector<std::vector<std::vector<int>>>;

/// The error says what cannot be trained, or at which step the loss was not a
/// number.
Result<Training> train_serially(const TrainingSpec& spec, const TrainingData& data,
                                const Program& program, const Arrangements& arrangements);

/// "step 3: the loss of microbatch 2 is nan" or "is infinite". Also of a replica, where there
/// are several.
Error not_a_number(int step, int replicas, int replica, int microbatch, Real loss);

/// `loss`: the sum over the targets of each microbatch, in order.
inline Real sum_of(const std::vector<Real>& losses) {
  Real sum = 0;
  for (const Real loss : losses) sum += loss;
  return sum;
}

}  // namespace rrfp
