// Message-driven execution of one rank's (and lane's) iteration: what has come
// is fed to the core's machines, what they decide is carried out. No policy is
// in here. What lanes tell each other is in LaneGroup, what goes to other ranks
// in OutgoingMessages, the end of the iteration in GradientSync.
//
// With one lane the worker decides and launches. With more, lane 0 decides and
// announces; every lane (lane 0 too) launches what is announced, in that order.
// A lane tells the leader which messages it has (vote), or holds a task back
// until its own inputs are there (leader).
//
// Invariants
//  1. Every event is applied before the decisions that follow it.
//  2. decide() is called after an event of this rank or at the time it asked
//     for, not in between.
//
// Not thread safe.
#pragma once

#include <vector>

#include "executor/gradient_sync.h"
#include "executor/iteration_loop.h"
#include "executor/lane_group.h"
#include "executor/outgoing_messages.h"

namespace rrfp {

class RankLoop final : public IterationLoop {
 public:
  explicit RankLoop(const LoopContext& context);

  Result<void> on_letter(const Letter& letter, Payload payload, std::int64_t now_ns) override;
  Result<bool> step(std::int64_t now_ns) override;
  std::int64_t next_ns() const override;
  bool finished() const override;
  bool quiet() const override;
  TaskId next_task() const override;
  bool just_started(TaskId task) override {
    if (task == kNoTask || just_started_ != task) return false;
    just_started_ = kNoTask;
    return true;
  }
  std::string waiting(std::int64_t now_ns) const override;
  WorkerRecord take_record() override;

 private:
  // Of a task, by TaskId.
  struct TaskState {
    std::int64_t ready_ns = 0;
    std::int64_t decided_ns = 0;
    std::int64_t not_before_ns = 0;
    std::int32_t record = -1;         // into record_.tasks
    std::int16_t inputs_missing = 0;  // from other ranks, on this lane
    bool ended = false;
  };
  // Of a message to this worker, by edge * microbatches + microbatch.
  struct MessageState {
    std::int32_t arrival = -1;  // into record_.arrivals; -1: not here
    bool noticed = false;       // this worker was told when to expect it
  };

  Result<void> take_message(const Letter& letter, Payload payload, std::int64_t now_ns);
  void arrived_for_group(EdgeId edge, TaskId task, std::int64_t now_ns);
  Result<void> take_notice(const Letter& letter, std::int64_t now_ns);
  Result<void> on_device(const DeviceEvent& event, std::int64_t now_ns);
  Result<void> finish_task(TaskId task, std::int64_t end_ns, std::int64_t now_ns);
  void note_ready(TaskId task, std::int64_t now_ns);
  void adapt(TaskId task, std::int64_t length_ns);
  void note_local_outputs(TaskId task, std::int64_t now_ns);
  void decide(std::int64_t now_ns);
  void begin_task(TaskId task, std::int64_t now_ns);
  void launch_announced(std::int64_t now_ns);
  void launch(TaskId task, std::int64_t not_before_ns, std::int64_t now_ns);
  void return_credits(TaskId task, std::int64_t now_ns);
  void note_signal(SignalRecord::Type type, EdgeId edge, const Letter& letter, std::int64_t now_ns);
  std::string missing_input(TaskId task) const;
  Error wrong(const Letter& letter, const std::string& why) const;

  TaskState& at(TaskId task) { return states_[static_cast<std::size_t>(task)]; }
  const TaskState& at(TaskId task) const { return states_[static_cast<std::size_t>(task)]; }
  MessageState& message(EdgeId edge, int microbatch) {
    return messages_[static_cast<std::size_t>(edge * microbatches_ + microbatch)];
  }
  const MessageState& message(EdgeId edge, int microbatch) const {
    return messages_[static_cast<std::size_t>(edge * microbatches_ + microbatch)];
  }

  LoopContext context_;
  const PreparedCase& world_;
  const Program& program_;
  CoreMachines& machines_;
  const int microbatches_;
  const int depth_;
  const int size_;  // tasks of the rank

  std::vector<TaskState> states_;
  std::vector<MessageState> messages_;
  std::span<const RootInput> roots_;  // by time
  std::size_t next_root_ = 0;
  LaneGroup group_;
  OutgoingMessages outgoing_;
  GradientSync sync_;
  int ended_count_ = 0;
  std::int64_t last_end_ns_ = 0;
  bool dirty_ = true;  // something happened since the last decision
  std::int64_t wake_ns_ = kNever;
  TaskId just_started_ = kNoTask;
  WorkerRecord record_;
};

}  // namespace rrfp
