#include "scheduler_core/schedule_check.h"

#include <cstddef>
#include <string>
#include <vector>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

std::string rank_name(int rank) { return "rank " + std::to_string(rank); }

// A task that has yet to end before another may start, and how that reads.
struct Unmet {
  TaskId task = kNoTask;  // kNoTask: nothing is unmet
  const char* as = "";
};

// Runs a fixed order on the rules of readiness, without time.
class FixedOrderRun {
 public:
  FixedOrderRun(const Program& program, const Schedule& schedule)
      : program_(program), done_(index(program.task_ids())), next_(schedule.ranks.size()) {
    for (const std::vector<Task>& order : schedule.ranks) {
      std::vector<TaskId>& ids = order_.emplace_back();
      ids.reserve(order.size());
      for (const Task& task : order) {
        ids.push_back(program.find(task));
        RRFP_CHECK(ids.back() != kNoTask);
      }
    }
  }

  Result<void> run() {
    std::vector<int> ranks;
    for (int rank = program_.ranks() - 1; rank >= 0; --rank) ranks.push_back(rank);
    while (!ranks.empty()) {
      const int rank = ranks.back();
      ranks.pop_back();
      while (!ended(rank) && first_unmet(head(rank)).task == kNoTask) {
        const TaskId task = head(rank);
        done_[index(task)] = true;
        ++next_[index(rank)];
        if (program_.slot_of(task) == Slot::kWeight) continue;  // nobody else waits for it
        for (const EdgeId edge :
             program_.edges_from(program_.stage_of(task), program_.slot_of(task))) {
          if (!program_.edge(edge).local()) ranks.push_back(program_.edge(edge).to_rank);
        }
      }
    }
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      if (!ended(rank)) return Error{"the fixed order deadlocks: " + cycle_from(rank)};
    }
    return {};
  }

 private:
  bool ended(int rank) const { return next_[index(rank)] == order_[index(rank)].size(); }
  // The task that the rank is at. REQUIRES: !ended(rank).
  TaskId head(int rank) const { return order_[index(rank)][next_[index(rank)]]; }
  int rank_of(TaskId task) const { return program_.rank_of(program_.stage_of(task)); }

  Unmet first_unmet(TaskId id) const {
    const int stage = program_.stage_of(id);
    const int microbatch = program_.microbatch_of(id);
    const auto unmet = [&](int other, Slot slot) {
      return !done_[index(program_.task_id(other, slot, microbatch))];
    };
    const auto named = [&](int other, Slot slot, const char* as) {
      return Unmet{program_.task_id(other, slot, microbatch), as};
    };
    switch (program_.slot_of(id)) {
      case Slot::kForward:
        for (const int before : program_.predecessors(stage)) {
          if (unmet(before, Slot::kForward)) {
            return named(before, Slot::kForward, "an activation from ");
          }
        }
        break;
      case Slot::kBackward:
        if (unmet(stage, Slot::kForward)) return named(stage, Slot::kForward, "its own forward ");
        for (const int after : program_.successors(stage)) {
          if (unmet(after, Slot::kBackward)) {
            return named(after, Slot::kBackward, "a gradient from ");
          }
        }
        break;
      case Slot::kWeight:
        if (unmet(stage, Slot::kBackward)) {
          return named(stage, Slot::kBackward, "its own input gradient ");
        }
        break;
    }
    return unmet_accumulation(id, stage, microbatch);
  }

  Unmet unmet_accumulation(TaskId id, int stage, int microbatch) const {
    if (!program_.ordered_accumulation() || microbatch == 0 || !program_.accumulates(id)) return {};
    TaskId before = program_.task_id(stage, Slot::kWeight, microbatch - 1);
    if (!program_.exists(before)) {
      before = program_.task_id(stage, Slot::kBackward, microbatch - 1);
    }
    if (done_[index(before)]) return {};
    return {before, "the accumulation before it, "};
  }

  std::string name(TaskId task) const {
    return to_string(program_.task(task)) + " (" + rank_name(rank_of(task)) + ")";
  }

  // Every stuck head waits for a task that is a stuck rank's head or stands
  // behind it, so following them must come back to a rank seen before.
  std::string cycle_from(int rank) const {
    std::vector<bool> seen(next_.size());
    while (!seen[index(rank)]) {
      seen[index(rank)] = true;
      rank = rank_of(first_unmet(head(rank)).task);
    }
    constexpr int kMostHops = 16;
    const int start = rank;
    std::string text = name(head(start));
    int hops = 0;
    do {
      const Unmet wait = first_unmet(head(rank));
      rank = rank_of(wait.task);
      if (++hops > kMostHops) continue;
      text +=
          std::string(hops == 1 ? " waits for " : ", which waits for ") + wait.as + name(wait.task);
      if (wait.task != head(rank)) text += ", which stands behind " + name(head(rank));
    } while (rank != start);
    if (hops > kMostHops) {
      text += ", and so on over " + std::to_string(hops - kMostHops) + " more ranks, back to " +
              name(head(start));
    }
    return text;
  }

  const Program& program_;
  std::vector<std::vector<TaskId>> order_;
  std::vector<bool> done_;
  std::vector<std::size_t> next_;
};

Result<void> replay(const Program& program, int rank, const std::vector<Task>& order,
                    const MemoryModel& memory, std::int64_t budget_bytes) {
  Admission admission(program, rank, memory, budget_bytes);
  std::vector<int> local_of(index(program.stages()));
  int count = 0;
  for (const int stage : program.stages_of(rank)) local_of[index(stage)] = count++;
  for (std::size_t position = 0; position < order.size(); ++position) {
    const Task& task = order[position];
    const int local = local_of[index(task.stage)];
    if (task.kind == Kind::kForward) {
      if (!admission.admits(local, task.microbatch)) {
        return Error{"order of " + rank_name(rank) + ": " + to_string(task) + " at position " +
                     std::to_string(position) + " can never start: it takes " +
                     std::to_string(admission.activation(local, task.microbatch)) +
                     ", what ran before it holds " + std::to_string(admission.held_bytes()) +
                     ", and the budget is " + std::to_string(budget_bytes)};
      }
      admission.take(local, task.microbatch);
    }
    admission.give_back(local, task.microbatch, returned_by(program, program.find(task)));
  }
  return {};
}

}  // namespace

Result<void> check_budgets(const Program& program, std::span<const std::int64_t> activation_bytes,
                           std::span<const std::optional<std::int64_t>> budget_bytes) {
  if (!budget_bytes.empty() && budget_bytes.size() != index(program.ranks())) {
    return Error{"budget_bytes has " + std::to_string(budget_bytes.size()) +
                 " entries; the program has " + std::to_string(program.ranks()) + " ranks"};
  }
  for (std::size_t rank = 0; rank < budget_bytes.size(); ++rank) {
    const int number = static_cast<int>(rank);
    const std::int64_t least = least_budget(program, activation_bytes, number);
    if (!budget_bytes[rank].has_value() || *budget_bytes[rank] >= least) continue;
    return Error{rank_name(number) + ": budget_bytes is " + std::to_string(*budget_bytes[rank]) +
                 "; the least that works is " + std::to_string(least) +
                 " (the largest activation of each of its stages, summed)"};
  }
  return {};
}

Result<void> check_fixed_order(const Program& program, const Schedule& schedule) {
  return FixedOrderRun(program, schedule).run();
}

Result<void> check_fixed_memory(const Program& program, const Schedule& schedule,
                                const MemoryModel& memory,
                                std::span<const std::optional<std::int64_t>> budget_bytes) {
  for (std::size_t rank = 0; rank < budget_bytes.size(); ++rank) {
    if (!budget_bytes[rank].has_value()) continue;
    Result<void> fits =
        replay(program, static_cast<int>(rank), schedule.ranks[rank], memory, *budget_bytes[rank]);
    if (!fits) return fits;
  }
  return {};
}

}  // namespace rrfp
