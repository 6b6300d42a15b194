#include "sim/launch_cells.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "scheduler_core/check.h"
#include "sim/launch_program.h"

namespace rrfp {

namespace {

/// Start and end of every task when `order` runs as planned; unplanned where
/// it blocks.
class Plan {
 public:
  static constexpr std::int64_t kUnplanned = -1;

  Plan(const Case& input, const Schedule& order)
      : input_(input), program_(input.program), open_(program_.task_ids()) {
    start_ns_.assign(program_.task_ids(), kUnplanned);
    end_ns_.assign(program_.task_ids(), kUnplanned);
    ready_ns_.assign(program_.task_ids(), 0);
    for (const std::vector<Task>& tasks : order.ranks) {
      std::vector<TaskId>& ids = order_.emplace_back();
      for (const Task& task : tasks) {
        ids.push_back(program_.find(task));
        RRFP_CHECK(ids.back() != kNoTask);
        open_[ids.back()] = program_.dependencies(ids.back());
        const bool root = program_.slot_of(ids.back()) == Slot::kForward &&
                          program_.predecessors(task.stage).empty();
        if (root) --open_[ids.back()];
      }
    }
    next_.assign(order_.size(), 0);
    free_ns_.assign(order_.size(), 0);
    std::vector<int> worklist;
    for (int rank = 0; rank < program_.ranks(); ++rank) worklist.push_back(rank);
    for (std::size_t head = 0; head < worklist.size(); ++head) advance(worklist[head], &worklist);
  }

  const std::vector<std::vector<TaskId>>& order() const { return order_; }
  std::int64_t start_ns(TaskId task) const { return start_ns_[task]; }
  std::int64_t end_ns(TaskId task) const { return end_ns_[task]; }

 private:
  void advance(int rank, std::vector<int>* worklist) {
    const std::vector<TaskId>& tasks = order_[rank];
    std::size_t& next = next_[rank];
    while (next < tasks.size() && open_[tasks[next]] == 0) {
      const TaskId task = tasks[next++];
      const std::vector<std::int64_t>& expected =
          input_.expected_ns.empty() ? input_.duration_ns : input_.expected_ns;
      start_ns_[task] = std::max(free_ns_[rank], ready_ns_[task]);
      end_ns_[task] = start_ns_[task] + expected[task];
      free_ns_[rank] = end_ns_[task];
      release_all(task, worklist);
    }
  }

  void release(TaskId task, std::int64_t ns) {
    if (!program_.exists(task)) return;
    --open_[task];
    ready_ns_[task] = std::max(ready_ns_[task], ns);
  }

  void release_all(TaskId task, std::vector<int>* worklist) {
    const int stage = program_.stage_of(task);
    const int microbatch = program_.microbatch_of(task);
    const Slot slot = program_.slot_of(task);
    const std::int64_t end_ns = end_ns_[task];
    if (slot == Slot::kForward) {
      release(program_.task_id(stage, Slot::kBackward, microbatch), end_ns);
    }
    if (slot == Slot::kBackward) {
      release(program_.task_id(stage, Slot::kWeight, microbatch), end_ns);
    }
    if (const TaskId next = program_.next_accumulation(task); next != kNoTask) {
      release(next, end_ns);
    }
    for (const EdgeId id : program_.edges_from(stage, slot)) {
      const Edge& edge = program_.edge(id);
      const std::int64_t transfer_ns = edge.local() ? 0 : input_.network.message_ns;
      release(program_.task_id(edge.to, edge.slot(), microbatch), end_ns + transfer_ns);
      if (!edge.local()) worklist->push_back(edge.to_rank);
    }
  }

  const Case& input_;
  const Program& program_;
  std::vector<int> open_;  ///< by TaskId: dependencies that have not ended
  std::vector<std::int64_t> ready_ns_;
  std::vector<std::int64_t> start_ns_;
  std::vector<std::int64_t> end_ns_;
  std::vector<std::vector<TaskId>> order_;
  std::vector<std::size_t> next_;  ///< by rank: position in its order
  std::vector<std::int64_t> free_ns_;
};

/// A communication cell with its place in the sort.
struct PlannedMessage {
  std::int64_t ns = 0;  ///< planned end of the producer
  LaunchCell cell;
  TaskId producer = kNoTask;
};

/// By rank, sorted by planned time, then in order of producing rank and
/// position (the order in which they are made).
std::vector<std::vector<PlannedMessage>> planned_messages(const Program& program,
                                                          const Plan& plan) {
  std::vector<std::vector<PlannedMessage>> messages(program.ranks());
  for (const std::vector<TaskId>& tasks : plan.order()) {
    for (const TaskId task : tasks) {
      if (plan.end_ns(task) == Plan::kUnplanned) continue;
      for (const EdgeId id : program.edges_from(program.stage_of(task), program.slot_of(task))) {
        const Edge& edge = program.edge(id);
        if (edge.local()) continue;
        const std::int32_t message = id * program.microbatches() + program.microbatch_of(task);
        messages[edge.from_rank].push_back(
            {plan.end_ns(task), {LaunchCellKind::kSend, kNoTask, message}, task});
        messages[edge.to_rank].push_back(
            {plan.end_ns(task), {LaunchCellKind::kReceive, kNoTask, message}, task});
      }
    }
  }
  for (std::vector<PlannedMessage>& list : messages) {
    std::stable_sort(list.begin(), list.end(),
                     [](const PlannedMessage& a, const PlannedMessage& b) { return a.ns < b.ns; });
  }
  return messages;
}

/// A cell and the planned time by which the pass moves it: the producer's end
/// of a communication cell, its own end of a compute cell.
struct TimedCell {
  LaunchCell cell;
  std::int64_t ns = 0;
};

std::vector<TimedCell> merge(const std::vector<TaskId>& tasks, const Plan& plan,
                             const std::vector<PlannedMessage>& messages, int task_ids) {
  std::vector<TimedCell> cells;
  std::vector<bool> placed(task_ids);
  std::size_t next = 0;
  std::vector<PlannedMessage> held;  // sends of tasks that take no time: not before them
  const auto put = [&](const PlannedMessage& message) {
    cells.push_back({message.cell, message.ns});
  };
  for (const TaskId task : tasks) {
    const std::int64_t start_ns = plan.start_ns(task);
    for (; next < messages.size() && start_ns != Plan::kUnplanned && messages[next].ns <= start_ns;
         ++next) {
      const PlannedMessage& message = messages[next];
      const bool early = message.cell.kind == LaunchCellKind::kSend && !placed[message.producer];
      if (early) {
        held.push_back(message);
      } else {
        put(message);
      }
    }
    cells.push_back({{LaunchCellKind::kCompute, task, -1}, plan.end_ns(task)});
    placed[task] = true;
    while (!held.empty() && held.front().producer == task) {
      put(held.front());
      held.erase(held.begin());
    }
  }
  for (; next < messages.size(); ++next) put(messages[next]);
  return cells;
}

}  // namespace

std::vector<LaunchCell> communication_cells(const Program& program, LaunchCellKind kind, int stage,
                                            Kind tensor, int microbatch) {
  std::vector<LaunchCell> cells;
  for (std::size_t id = 0; id < program.edges().size(); ++id) {
    const Edge& edge = program.edges()[id];
    const int end = kind == LaunchCellKind::kSend ? edge.from : edge.to;
    if (!edge.crosses() || edge.kind != tensor || end != stage) continue;
    cells.push_back(
        {kind, kNoTask, static_cast<std::int32_t>(id) * program.microbatches() + microbatch});
  }
  return cells;
}

Result<LaunchCells> given_cells(const Program& program, const Schedule& order,
                                const std::vector<std::vector<OrderedMessage>>& messages) {
  LaunchCells cells;
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
    std::vector<LaunchCell>& row = cells.emplace_back();
    std::size_t next = 0;
    const auto add_messages = [&](int position) -> Result<void> {
      for (; next < messages[rank].size() && messages[rank][next].position == position; ++next) {
        const OrderedMessage& message = messages[rank][next];
        const std::string what = std::to_string(message.stage) +
                                 (message.sends ? "SEND_" : "RECV_") + letter(message.tensor) +
                                 std::to_string(message.microbatch) + " of rank " +
                                 std::to_string(rank);
        if (message.stage < 0 || message.stage >= program.stages() || message.microbatch < 0 ||
            message.microbatch >= program.microbatches()) {
          return Error{what + ": there is no such stage or microbatch"};
        }
        if (program.rank_of(message.stage) != static_cast<int>(rank)) {
          return Error{what + ": the stage is on rank " +
                       std::to_string(program.rank_of(message.stage))};
        }
        const auto kind = message.sends ? LaunchCellKind::kSend : LaunchCellKind::kReceive;
        for (const LaunchCell& cell : communication_cells(program, kind, message.stage,
                                                          message.tensor, message.microbatch)) {
          row.push_back(cell);
        }
      }
      return {};
    };
    for (std::size_t i = 0; i < order.ranks[rank].size(); ++i) {
      if (Result<void> added = add_messages(static_cast<int>(i)); !added.ok()) return added.error();
      row.push_back({LaunchCellKind::kCompute, program.find(order.ranks[rank][i]), -1});
    }
    const auto end = static_cast<int>(order.ranks[rank].size());
    if (Result<void> added = add_messages(end); !added.ok()) return added.error();
  }
  return cells;
}

LaunchCells place_cells(const Case& input, const Schedule& order) {
  const Plan plan(input, order);
  const auto messages = planned_messages(input.program, plan);
  LaunchCells placed;
  for (std::size_t rank = 0; rank < plan.order().size(); ++rank) {
    std::vector<TimedCell> cells =
        merge(plan.order()[rank], plan, messages[rank], input.program.task_ids());
    for (std::size_t i = 1; i < cells.size(); ++i) {
      TimedCell& before = cells[i - 1];
      if (before.cell.kind == LaunchCellKind::kCompute &&
          cells[i].cell.kind == LaunchCellKind::kReceive && cells[i].ns <= before.ns) {
        std::swap(before, cells[i]);
      }
    }
    std::vector<LaunchCell>& row = placed.emplace_back();
    for (const TimedCell& cell : cells) row.push_back(cell.cell);
  }
  return placed;
}

}  // namespace rrfp
