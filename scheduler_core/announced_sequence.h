// What one lane of a tensor-parallel group runs next. The group's leader
// announces (sequence number, task); every lane runs the announced tasks in
// that order and no other.
//
// Invariants
//  1. Sequence numbers are contiguous from 0: an announcement that is lost,
//     repeated or overtaken ends the program rather than let lanes run
//     different tasks into one collective.
//  2. pop() hands out tasks in announced order, each once.
//
// No allocation after construction. Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler_core/check.h"
#include "scheduler_core/task.h"

namespace rrfp {

class AnnouncedSequence {
 public:
  /// `capacity`: how many tasks may be announced in an iteration.
  explicit AnnouncedSequence(int capacity) : tasks_(static_cast<std::size_t>(capacity), kNoTask) {}

  /// Back to the start of an iteration.
  void reset() { announced_ = popped_ = 0; }

  /// REQUIRES: `sequence` is announced(), and below the capacity.
  void on_announced(std::int64_t sequence, TaskId task) {
    RRFP_CHECK(sequence == announced_);
    RRFP_CHECK(announced_ < static_cast<std::int64_t>(tasks_.size()));
    tasks_[static_cast<std::size_t>(announced_++)] = task;
  }

  /// The task to run next; kNoTask where none is announced.
  TaskId front() const {
    return popped_ == announced_ ? kNoTask : tasks_[static_cast<std::size_t>(popped_)];
  }

  /// Takes front(), and gives its sequence number. REQUIRES: there is one.
  std::int64_t pop() {
    RRFP_CHECK(popped_ < announced_);
    return popped_++;
  }

  std::int64_t announced() const { return announced_; }
  std::int64_t popped() const { return popped_; }

 private:
  std::vector<TaskId> tasks_;
  std::int64_t announced_ = 0;
  std::int64_t popped_ = 0;
};

}  // namespace rrfp
