// Hints for any program: rankings of work that need no particular placement.
// Without a window each of them runs; as a fixed order (window 1) only
// critical-path is sure to.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "scheduler_core/random.h"
#include "scheduler_core/schedule_families.h"

namespace rrfp {

namespace {

std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

// What a sort by kind compares: the kind's place, then the microbatch, then
// the stage, the highest first for F and the lowest first for the others: the
// F that is closest to the loss and the gradient that is furthest from it have
// the most work behind them.
using KindKey = std::tuple<int, int, int>;

KindKey kind_key(const Program& program, TaskId id, const std::array<int, kSlots>& place) {
  const Slot slot = program.slot_of(id);
  const int stage = program.stage_of(id);
  return {place[static_cast<std::size_t>(slot)], program.microbatch_of(id),
          slot == Slot::kForward ? -stage : stage};
}

Schedule to_schedule(const Program& program, const std::vector<std::vector<TaskId>>& ranks) {
  Schedule schedule;
  schedule.ranks.resize(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    schedule.ranks[rank].reserve(ranks[rank].size());
    for (const TaskId id : ranks[rank]) schedule.ranks[rank].push_back(program.task(id));
  }
  return schedule;
}

// Sorts each rank's tasks by `less`, a total order.
template <typename Less>
Schedule sorted(const Program& program, Less less) {
  std::vector<std::vector<TaskId>> ranks;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    ranks.push_back(program.tasks_of_rank(rank));
    std::sort(ranks.back().begin(), ranks.back().end(), less);
  }
  return to_schedule(program, ranks);
}

Schedule by_kind(const Program& program, const std::array<int, kSlots>& place) {
  return sorted(program, [&](TaskId a, TaskId b) {
    return kind_key(program, a, place) < kind_key(program, b, place);
  });
}

// Places of F, backward and W, in the order of Slot.
constexpr std::array<int, kSlots> kBackwardFirst = {1, 0, 2};
constexpr std::array<int, kSlots> kForwardFirst = {0, 1, 2};

std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::numeric_limits<std::int64_t>::max();
  return sum;
}

// The longest way from the start of a task to the end of the iteration: in
// expected ns, and among equals in tasks. The count makes a task come before
// all that depend on it where some tasks take no time.
struct Path {
  std::int64_t length_ns = 0;
  std::int32_t tasks = 0;

  friend auto operator<=>(const Path&, const Path&) = default;
};

class LongestPaths {
 public:
  LongestPaths(const Program& program, const ScheduleContext& context)
      : program_(program), context_(context), paths_(index(program.task_ids())) {
    // Backwards through the dependencies: microbatches descend because an
    // ordered accumulation waits for the microbatch before it; within one, W,
    // then gradients from the first stage on, then forwards from the last.
    for (int microbatch = program.microbatches() - 1; microbatch >= 0; --microbatch) {
      for (int stage = 0; stage < program.stages(); ++stage) {
        visit(program.task_id(stage, Slot::kWeight, microbatch));
      }
      for (int stage = 0; stage < program.stages(); ++stage) {
        visit(program.task_id(stage, Slot::kBackward, microbatch));
      }
      for (int stage = program.stages() - 1; stage >= 0; --stage) {
        visit(program.task_id(stage, Slot::kForward, microbatch));
      }
    }
  }

  const Path& operator[](TaskId id) const { return paths_[index(id)]; }

 private:
  void visit(TaskId id) {
    if (!program_.exists(id)) return;
    const int stage = program_.stage_of(id);
    const int microbatch = program_.microbatch_of(id);
    const Slot slot = program_.slot_of(id);
    Path rest;
    const auto follow = [&](TaskId next, std::int64_t transfer_ns) {
      if (!program_.exists(next)) return;
      Path path = paths_[index(next)];
      path.length_ns = saturating_sum(path.length_ns, transfer_ns);
      rest = {std::max(rest.length_ns, path.length_ns), std::max(rest.tasks, path.tasks)};
    };
    for (const EdgeId edge : program_.edges_from(stage, slot)) {
      follow(program_.task_id(program_.edge(edge).to, slot, microbatch), transfer_ns(edge));
    }
    if (slot == Slot::kForward) follow(program_.task_id(stage, Slot::kBackward, microbatch), 0);
    if (slot == Slot::kBackward) follow(program_.task_id(stage, Slot::kWeight, microbatch), 0);
    if (const TaskId next = program_.next_accumulation(id); next != kNoTask) follow(next, 0);
    paths_[index(id)] = {saturating_sum(rest.length_ns, duration_ns(id)), rest.tasks + 1};
  }

  // Without a profile every F, I and W counts as one and a whole backward as
  // both of its halves.
  std::int64_t duration_ns(TaskId id) const {
    if (!context_.expected_ns.empty()) return context_.expected_ns[index(id)];
    return program_.task(id).kind == Kind::kBackward ? 2 : 1;
  }
  std::int64_t transfer_ns(EdgeId edge) const {
    if (context_.expected_transfer_ns.empty() || program_.edge(edge).local()) return 0;
    return context_.expected_transfer_ns[index(edge)];
  }

  const Program& program_;
  const ScheduleContext& context_;
  std::vector<Path> paths_;
};

}  // namespace

Result<Schedule> make_bf(const Program& program, const ScheduleContext&) {
  return by_kind(program, kBackwardFirst);
}

Result<Schedule> make_bfw(const Program& program, const ScheduleContext&) {
  return by_kind(program, kBackwardFirst);
}

Result<Schedule> make_fbw(const Program& program, const ScheduleContext&) {
  return by_kind(program, kForwardFirst);
}

Result<Schedule> make_critical_path(const Program& program, const ScheduleContext& context) {
  if (!context.expected_ns.empty() && context.expected_ns.size() != index(program.task_ids())) {
    return Error{"schedule critical-path: expected_ns has " +
                 std::to_string(context.expected_ns.size()) + " entries; the program has " +
                 std::to_string(program.task_ids()) + " task ids"};
  }
  if (!context.expected_transfer_ns.empty() &&
      context.expected_transfer_ns.size() != program.edges().size()) {
    return Error{"schedule critical-path: expected_transfer_ns has " +
                 std::to_string(context.expected_transfer_ns.size()) +
                 " entries; the program has " + std::to_string(program.edges().size()) + " edges"};
  }
  const LongestPaths paths(program, context);
  return sorted(program, [&](TaskId a, TaskId b) {
    if (paths[a] != paths[b]) return paths[a] > paths[b];
    return kind_key(program, a, kBackwardFirst) < kind_key(program, b, kBackwardFirst);
  });
}

Result<Schedule> make_random(const Program& program, const ScheduleContext& context) {
  constexpr std::uint64_t kShuffle = 0x68696e74;  // "hint": keeps these draws apart from others
  const std::uint64_t seed = context.hint == nullptr ? 0 : context.hint->seed;
  std::vector<std::vector<TaskId>> ranks;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    std::vector<TaskId> tasks = program.tasks_of_rank(rank);
    RandomStream stream({seed, 0, kShuffle, static_cast<std::uint64_t>(rank)});
    for (std::size_t left = tasks.size(); left > 1; --left) {
      std::swap(tasks[left - 1], tasks[static_cast<std::size_t>(stream.below(left))]);
    }
    ranks.push_back(std::move(tasks));
  }
  return to_schedule(program, ranks);
}

}  // namespace rrfp
