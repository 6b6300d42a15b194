// Small models, texts and pipelines that train within milliseconds, for the
// tests of training.
#pragma once

#include <string>
#include <vector>

#include "executor/training_run.h"
#include "scheduler_core/random.h"
#include "tests/executor/runs_for_tests.h"

namespace rrfp {

inline std::string small_text() {
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += "the " + std::string(i % 3 == 0 ? "cat" : "dog") + " sat on the mat; ";
  }
  return text;
}

inline TrainingSetup small_setup() {
  TrainingSetup setup;
  setup.spec.model.width = 8;
  setup.spec.model.heads = 2;
  setup.spec.model.mlp_width = 12;
  setup.spec.model.blocks = 4;
  setup.spec.data.shortest = 3;
  setup.spec.data.longest = 12;
  setup.spec.optimizer.learning_rate = 0.2;
  setup.steps = 3;
  return setup;
}

// How a pipeline looks; the rest of a case is the model's.
struct Shape {
  int ranks = 3;
  int microbatches = 6;
  bool split = true;
  bool ordered = true;
  std::vector<StageSpec> stages = {};  // empty: a chain, one stage per rank
};

inline Case case_of(const Shape& shape) {
  ProgramSpec spec;
  spec.ranks = shape.ranks;
  spec.microbatches = shape.microbatches;
  spec.split_backward = shape.split;
  spec.ordered_accumulation = shape.ordered;
  spec.stages = shape.stages;
  for (int stage = 0; shape.stages.empty() && stage < shape.ranks; ++stage) {
    spec.stages.push_back({stage, {}, Backward::kFull});
    if (stage > 0) spec.stages.back().predecessors = {stage - 1};
  }
  Case made{"training", *Program::create(spec)};
  made.duration_ns.assign(static_cast<std::size_t>(made.program.task_ids()), 0);
  return made;
}

// Tasks and messages of 0 to so many ns, drawn anew for each seed.
inline void draw_world(Case& to, std::int64_t task_ns, std::int64_t latency_ns,
                       std::uint64_t seed) {
  for (std::size_t i = 0; i < to.duration_ns.size(); ++i) {
    to.duration_ns[i] =
        static_cast<std::int64_t>(random_unit({seed, 0, 1, i}) * static_cast<double>(task_ns));
  }
  set_latency(to, 0);
  for (std::size_t edge = 0; edge < to.network.latency_ns.size(); ++edge) {
    for (std::size_t i = 0; i < to.network.latency_ns[edge].size(); ++i) {
      to.network.latency_ns[edge][i] = static_cast<std::int64_t>(random_unit({seed, edge, 2, i}) *
                                                                 static_cast<double>(latency_ns));
    }
  }
}

// An encoder of two stages and the decoder's root, joined on rank 2.
inline Shape with_encoder(Backward of_encoder) {
  Shape shape{3, 5, true, true, {}};
  shape.stages = {{0, {}, of_encoder},
                  {1, {0}, of_encoder},
                  {0, {}, Backward::kFull},
                  {2, {1, 2}, Backward::kFull},
                  {1, {3}, Backward::kFull}};
  return shape;
}

}  // namespace rrfp
