// Collects the orders of a schedule task by task, so that a generator states
// its pattern once and for a whole backward: what a stage does not have (the
// W of an unsplit or input-only backward, every backward of a frozen stage) is
// left out, and a backward that is one task is written as one.
//
// Thread safety: one writer, one thread.
#pragma once

#include <cstddef>
#include <utility>

#include "scheduler_core/schedule.h"

namespace rrfp {

class OrderWriter {
 public:
  /// `program` must outlive the writer.
  explicit OrderWriter(const Program& program) : program_(program) {
    schedule_.ranks.resize(static_cast<std::size_t>(program.ranks()));
  }

  void forward(int stage, int microbatch) { add(stage, Slot::kForward, microbatch); }
  /// The I, or the B where the backward is one task.
  void input_gradient(int stage, int microbatch) { add(stage, Slot::kBackward, microbatch); }
  void weight_gradient(int stage, int microbatch) { add(stage, Slot::kWeight, microbatch); }
  /// The B, or the I with its W directly after it.
  void backward(int stage, int microbatch) {
    input_gradient(stage, microbatch);
    weight_gradient(stage, microbatch);
  }

  Schedule finish() && { return std::move(schedule_); }

 private:
  void add(int stage, Slot slot, int microbatch) {
    const TaskId id = program_.task_id(stage, slot, microbatch);
    if (!program_.exists(id)) return;
    const auto rank = static_cast<std::size_t>(program_.rank_of(stage));
    schedule_.ranks[rank].push_back(program_.task(id));
  }

  const Program& program_;
  Schedule schedule_;
};

}  // namespace rrfp
