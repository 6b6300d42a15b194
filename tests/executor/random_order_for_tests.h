// A rank with all stages of a chain, and an order of its tasks that is drawn as it
// goes: for tests of what any order may do to memory.
#pragma once

#include <cstddef>
#include <vector>

#include "scheduler_core/admission.h"
#include "scheduler_core/program.h"
#include "scheduler_core/random.h"

namespace rrfp {

struct OneRank {
  int stages = 1;
  bool split = false;
  bool ordered = false;
};

inline Program program_on_one_rank(const OneRank& shape, int microbatches) {
  ProgramSpec spec;
  spec.ranks = 1;
  spec.microbatches = microbatches;
  spec.split_backward = shape.split;
  spec.ordered_accumulation = shape.ordered;
  for (int stage = 0; stage < shape.stages; ++stage) {
    spec.stages.push_back({0, {}, Backward::kFull});
    if (stage > 0) spec.stages.back().predecessors = {stage - 1};
  }
  return *Program::create(spec);
}

class RandomOrder {
 public:
  RandomOrder(const Program& program, int microbatches) : program_(program) {
    for (int stage = 0; stage < program.stages(); ++stage) {
      for (int m = 0; m < microbatches; ++m) {
        next_.push_back(program.task_id(stage, Slot::kForward, m));
      }
    }
  }

  bool all_ran() const { return next_.empty(); }

  /// One of those whose predecessor of the same stage and microbatch ran.
  TaskId draw(RandomStream& random) {
    drawn_ = random.below(next_.size());
    return next_[drawn_];
  }

  /// What was drawn has run. Else it may be drawn again.
  void ran() {
    const TaskId task = next_[drawn_];
    const int stage = program_.stage_of(task);
    const int m = program_.microbatch_of(task);
    if (program_.slot_of(task) == Slot::kForward) {
      next_[drawn_] = program_.task_id(stage, Slot::kBackward, m);
    } else if (returned_by(program_, task) == Returns::kAllButStash) {
      next_[drawn_] = program_.task_id(stage, Slot::kWeight, m);
    } else {
      next_.erase(next_.begin() + static_cast<std::ptrdiff_t>(drawn_));
    }
  }

 private:
  const Program& program_;
  std::vector<TaskId> next_;  // the first task not yet run of each stage and microbatch
  std::size_t drawn_ = 0;
};

}  // namespace rrfp
