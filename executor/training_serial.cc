#include "executor/training_serial.h"

#include <cmath>

#include "executor/model_stage.h"

namespace rrfp {

namespace {

// The whole model of one replica.
struct Replica {
  std::vector<Stage> stages;
  HeldLaneSum lanes;
};

Replica make_replica(const ModelSpec& spec, const std::vector<StageCut>& cuts) {
  Replica replica;
  for (const StageCut& cut : cuts) replica.stages.emplace_back(spec, cut, HeldLanes{0, spec.lanes});
  return replica;
}

// Forward and backward of one microbatch; adds into the gradients. The answer
// is its loss.
Result<Real> run_microbatch(Replica& replica, const Program& program, const Sample& sample,
                            Real scale) {
  const int stages = program.stages();
  std::vector<Stage::Stash> stashes(static_cast<std::size_t>(stages));
  std::vector<Matrix> activations;
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<Matrix> inputs;
    for (const int from : program.predecessors(stage)) {
      inputs.push_back(activations[static_cast<std::size_t>(from)]);
    }
    const auto at = static_cast<std::size_t>(stage);
    Result<Matrix> output = replica.stages[at].forward(sample, inputs, replica.lanes, stashes[at]);
    if (!output.ok()) return output.error();
    activations.push_back(std::move(*output));
  }
  const Real loss = stashes.back().loss;
  std::vector<Matrix> gradients(static_cast<std::size_t>(stages));  // before the blocks
  for (int stage = stages; stage-- > 0;) {
    if (program.backward_of(stage) == Backward::kNone) continue;
    std::vector<Matrix> inputs;
    for (const int to : program.successors(stage)) {
      const Stage& successor = replica.stages[static_cast<std::size_t>(to)];
      const auto predecessors = program.predecessors(to);
      std::size_t index = 0;
      while (predecessors[index] != stage) ++index;
      inputs.push_back(gradient_for(successor.cut(), sample.lengths,
                                    gradients[static_cast<std::size_t>(to)], index));
    }
    const auto at = static_cast<std::size_t>(stage);
    Result<Matrix> gradient =
        replica.stages[at].input_gradient(inputs, scale, replica.lanes, stashes[at]);
    if (!gradient.ok()) return gradient.error();
    gradients[at] = std::move(*gradient);
    if (program.backward_of(stage) == Backward::kFull) {
      replica.stages[at].weight_gradient(stashes[at]);
    }
  }
  return loss;
}

Result<void> synchronise(std::vector<Replica>& replicas, const OptimizerSpec& optimizer,
                         std::size_t stage) {
  std::vector<Payload> gradients;
  for (Replica& replica : replicas) {
    gradients.push_back(gather_gradients(replica.stages[stage].parameters()));
  }
  const Result<Payload> sum = sum_gradients(gradients);
  if (!sum.ok()) return sum.error();
  for (Replica& replica : replicas) {
    const ParameterList parameters = replica.stages[stage].parameters();
    if (Result<void> taken = scatter_gradients(*sum, parameters); !taken.ok()) return taken;
    take_step(optimizer, parameters);
  }
  return {};
}

}  // namespace

Error not_a_number(int step, int replicas, int replica, int microbatch, Real loss) {
  std::string of = "the loss of microbatch " + std::to_string(microbatch);
  if (replicas > 1) of += " of replica " + std::to_string(replica);
  return Error{"step " + std::to_string(step) + ": " + of + " is " +
               (std::isnan(loss) ? "nan" : "infinite")};
}

Result<Training> train_serially(const TrainingSpec& spec, const TrainingData& data,
                                const Program& program, const Arrangements& arrangements) {
  const Result<std::vector<StageCut>> cuts = cut_model(spec.model, program);
  if (!cuts.ok()) return cuts.error();
  Training training;
  const int replicas = arrangements.empty() ? 1 : static_cast<int>(arrangements.front().size());
  std::vector<Replica> model;
  for (int i = 0; i < replicas; ++i) model.push_back(make_replica(spec.model, *cuts));
  for (std::size_t at = 0; at < arrangements.size(); ++at) {
    const int step = static_cast<int>(at);
    const std::int64_t targets = data.targets_of_step(step, replicas, program.microbatches());
    const Real scale = 1 / static_cast<Real>(targets);
    Real step_loss = 0;
    for (int i = 0; i < replicas; ++i) {
      const std::vector<int>& arrangement = arrangements[at][static_cast<std::size_t>(i)];
      std::vector<Real> losses;
      for (int m = 0; m < program.microbatches(); ++m) {
        const int given = arrangement.empty() ? m : arrangement[static_cast<std::size_t>(m)];
        const Result<Real> loss = run_microbatch(model[static_cast<std::size_t>(i)], program,
                                                 data.sample(step, i, given), scale);
        if (!loss.ok()) return loss.error();
        if (!std::isfinite(*loss)) return not_a_number(step, replicas, i, m, *loss);
        losses.push_back(*loss);
      }
      step_loss += sum_of(losses);
    }
    training.loss.push_back(step_loss / static_cast<Real>(targets));
    for (const StageCut& cut : *cuts) {
      if (program.backward_of(cut.stage) != Backward::kFull) continue;
      Result<void> synchronised =
          synchronise(model, spec.optimizer, static_cast<std::size_t>(cut.stage));
      if (!synchronised.ok()) return synchronised.error();
    }
  }
  for (Stage& stage : model.front().stages) {
    for (const Parameter* parameter : stage.parameters()) {
      training.weights.emplace(parameter->name, parameter->value);
    }
  }
  return training;
}

}  // namespace rrfp
