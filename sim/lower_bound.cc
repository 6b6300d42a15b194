#include "sim/lower_bound.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace rrfp {

namespace {

// Every dependency of a case as a step from one task to a later one.
class Paths {
 public:
  explicit Paths(const PreparedCase& prepared)
      : prepared_(prepared),
        program_(prepared.program()),
        mode_(prepared.input().network.mode),
        // The host of a launch queue dispatches ahead of its device.
        delay_ns_(mode_ == NetworkMode::kLaunchQueue ? 0 : prepared.start_delay_ns()),
        start_ns_(static_cast<std::size_t>(program_.task_ids()), 0),
        tail_ns_(static_cast<std::size_t>(program_.task_ids()), 0) {
    list_tasks();
    for (const TaskId task : order_) find_start(task);
    for (auto task = order_.rbegin(); task != order_.rend(); ++task) find_tail(*task);
  }

  std::int64_t longest_ns() const {
    std::int64_t longest_ns = 0;
    for (const TaskId task : order_) {
      longest_ns = std::max(longest_ns, start(task) + duration(task) + tail(task));
    }
    return longest_ns;
  }

  std::int64_t of_rank_ns(int rank) const {
    constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    // A rank that holds one task at a time decides after each task anew.
    const bool one_at_a_time =
        prepared_.input().queue_depth == 1 || mode_ == NetworkMode::kRendezvous;
    const std::int64_t pause_ns = one_at_a_time ? delay_ns_ : 0;
    std::int64_t first_ns = kNone;
    std::int64_t last_ns = kNone;
    std::int64_t work_ns = -pause_ns;
    for (const TaskId task : program_.tasks_of_rank(rank)) {
      first_ns = std::min(first_ns, start(task));
      last_ns = std::min(last_ns, tail(task));
      work_ns += duration(task) + pause_ns;
    }
    return first_ns == kNone ? 0 : first_ns + work_ns + last_ns;
  }

 private:
  static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }
  std::int64_t start(TaskId task) const { return start_ns_[index(task)]; }
  std::int64_t tail(TaskId task) const { return tail_ns_[index(task)]; }
  std::int64_t duration(TaskId task) const { return prepared_.duration_ns()[index(task)]; }

  // An order in which every task comes after all that it depends on.
  void list_tasks() {
    const auto add = [this](int stage, Slot slot, int microbatch) {
      const TaskId task = program_.task_id(stage, slot, microbatch);
      if (program_.exists(task)) order_.push_back(task);
    };
    for (int m = 0; m < program_.microbatches(); ++m) {
      for (int stage = 0; stage < program_.stages(); ++stage) add(stage, Slot::kForward, m);
      for (int stage = program_.stages() - 1; stage >= 0; --stage) add(stage, Slot::kBackward, m);
      for (int stage = 0; stage < program_.stages(); ++stage) add(stage, Slot::kWeight, m);
    }
  }

  // Calls step(next task, ns from the end of `task` to the earliest start).
  template <typename Step>
  void for_each_next(TaskId task, Step step) const {
    const int stage = program_.stage_of(task);
    const int m = program_.microbatch_of(task);
    const Slot slot = program_.slot_of(task);
    if (slot == Slot::kForward) follow(program_.task_id(stage, Slot::kBackward, m), step);
    if (slot == Slot::kBackward) follow(program_.task_id(stage, Slot::kWeight, m), step);
    for (const EdgeId edge : program_.edges_from(stage, slot)) {
      step(program_.task_id(program_.edge(edge).to, slot, m), message_ns(edge, m));
    }
    if (const TaskId next = program_.next_accumulation(task); next != kNoTask) follow(next, step);
  }

  template <typename Step>
  void follow(TaskId next, Step step) const {
    if (program_.exists(next)) step(next, delay_ns_);
  }

  std::int64_t message_ns(EdgeId edge, int microbatch) const {
    if (mode_ == NetworkMode::kLaunchQueue) return 0;
    if (program_.edge(edge).local()) return delay_ns_;
    const std::size_t message = index(edge * program_.microbatches() + microbatch);
    // The leader decides on what the group knows; the start waits for every lane.
    return prepared_.busy_ns()[message] +
           std::max(prepared_.group_latency_ns()[message] + delay_ns_,
                    prepared_.slowest_latency_ns()[message]);
  }

  void find_start(TaskId task) {
    const int m = program_.microbatch_of(task);
    const std::vector<std::int64_t>& ready_ns = prepared_.input().input_ready_ns;
    if (program_.slot_of(task) == Slot::kForward &&
        program_.predecessors(program_.stage_of(task)).empty()) {
      start_ns_[index(task)] = delay_ns_ + (ready_ns.empty() ? 0 : ready_ns[index(m)]);
    }
    for_each_next(task, [&](TaskId next, std::int64_t ns) {
      start_ns_[index(next)] = std::max(start(next), start(task) + duration(task) + ns);
    });
  }

  void find_tail(TaskId task) {
    for_each_next(task, [&](TaskId next, std::int64_t ns) {
      tail_ns_[index(task)] = std::max(tail(task), ns + duration(next) + tail(next));
    });
  }

  const PreparedCase& prepared_;
  const Program& program_;
  const NetworkMode mode_;
  const std::int64_t delay_ns_;  // from the decision on a ready task to its start
  std::vector<TaskId> order_;
  std::vector<std::int64_t> start_ns_;  // by TaskId: the earliest
  std::vector<std::int64_t> tail_ns_;   // by TaskId: the longest path after its end
};

}  // namespace

std::int64_t lower_bound_ns(const PreparedCase& prepared) {
  const Paths paths(prepared);
  std::int64_t bound_ns = paths.longest_ns();
  for (int rank = 0; rank < prepared.program().ranks(); ++rank) {
    bound_ns = std::max(bound_ns, paths.of_rank_ns(rank));
  }
  return bound_ns;
}

}  // namespace rrfp
