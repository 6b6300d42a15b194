// The lanes of a tensor-parallel group, as one of them sees them during an
// iteration: when a message has arrived for the group, what all of them run next,
// and when the last of them has started it.
//
// Invariants
//  1. Every lane launches the tasks that the leader (lane 0) announces, in that
//     order and no other.
//  2. What another lane says is checked before it is counted: what comes twice, or
//     before what it needs, is an error that names the lane.
//
// With one lane a message has arrived when it is here, and nothing is told.
// Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/iteration_loop.h"

namespace rrfp {

class LaneGroup {
 public:
  explicit LaneGroup(const LoopContext& context);

  bool is_one_lane() const { return lanes_ == 1; }
  bool leads() const { return leads_; }

  /// This lane has the message for `task` along `edge`; the leader learns it, if
  /// it asks for it. True: here, on the leader, it has now arrived for the group.
  bool on_arrival(EdgeId edge, TaskId task, std::int64_t now_ns);
  /// Another lane has it. True: it has now arrived for the group.
  Result<bool> take_vote(const Letter& letter);

  /// The leader has decided `task`: tells all lanes. REQUIRES: leads(), and there
  /// are others.
  void announce(TaskId task, std::int64_t not_before_ns);
  /// The leader has decided letter.task.
  Result<void> take_start(const Letter& letter);

  /// This lane, or another one, has started a task. The device is told once all
  /// have.
  void on_start(TaskId task, std::int64_t start_ns);
  Result<void> take_lane_start(const Letter& letter);

 private:
  // Of a task, by TaskId.
  struct TaskState {
    std::uint64_t lanes_started = 0;  // one bit each
    std::int64_t last_start_ns = 0;
    bool announced = false;  // on a lane that does not lead
  };

  TaskState& at(TaskId task) { return states_[static_cast<std::size_t>(task)]; }
  const TaskState& at(TaskId task) const { return states_[static_cast<std::size_t>(task)]; }
  void lane_started(TaskId task, int lane, std::int64_t start_ns);
  TaskId own_input_to_come(TaskId task) const;
  Error wrong(const Letter& letter, const std::string& why) const;

  LoopContext context_;
  const Program& program_;
  CoreMachines& machines_;
  const int lanes_;
  const bool leads_;  // lane 0
  const bool votes_;  // the leader waits for the messages of all lanes
  std::vector<TaskState> states_;
};

}  // namespace rrfp
