// Shared by the tests of schedules: programs by shape, orders as text, and an
// executor so small that it can be checked by eye.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scheduler_core/program.h"
#include "scheduler_core/schedule.h"

namespace rrfp::testing {

/// A chain of stages, stage s on rank rank_of(s).
template <typename RankOf>
Program chain(int ranks, int stages, int microbatches, bool split, RankOf rank_of) {
  ProgramSpec spec;
  spec.ranks = ranks;
  spec.microbatches = microbatches;
  spec.split_backward = split;
  for (int stage = 0; stage < stages; ++stage) {
    StageSpec self;
    self.rank = rank_of(stage);
    if (stage > 0) self.predecessors = {stage - 1};
    spec.stages.push_back(self);
  }
  return Program::create(spec).value();
}

inline Program linear(int ranks, int microbatches, bool split = false) {
  return chain(ranks, ranks, microbatches, split, [](int stage) { return stage; });
}

inline Program looped(int ranks, int chunks, int microbatches, bool split = false) {
  return chain(ranks, ranks * chunks, microbatches, split,
               [ranks](int stage) { return stage % ranks; });
}

inline Program v_shaped(int ranks, int microbatches) {
  return chain(ranks, 2 * ranks, microbatches, true,
               [ranks](int stage) { return std::min(stage, 2 * ranks - 1 - stage); });
}

inline Result<Schedule> make(const std::string& name, const Program& program, int group = 0) {
  HintSpec hint;
  hint.name = name;
  hint.group = group;
  return make_schedule(hint, program);
}

/// "0F0 0F1 0B0".
inline std::string text(const std::vector<Task>& order) {
  std::string line;
  for (const Task& task : order) line += (line.empty() ? "" : " ") + to_string(task);
  return line;
}

/// Runs a fixed order, one task per rank and round, on the rules of readiness
/// alone. True where every task ran.
inline bool runs_in_order(const Program& program, const Schedule& schedule) {
  std::set<Task> done;
  const auto ready = [&](const Task& task) {
    const int s = task.stage;
    const int m = task.microbatch;
    if (task.kind == Kind::kForward) {
      for (const int p : program.predecessors(s)) {
        if (!done.contains({p, Kind::kForward, m})) return false;
      }
      return true;
    }
    if (task.kind == Kind::kWeightGradient) return done.contains({s, Kind::kInputGradient, m});
    if (!done.contains({s, Kind::kForward, m})) return false;
    for (const int q : program.successors(s)) {
      if (!done.contains({q, Kind::kBackward, m}) && !done.contains({q, Kind::kInputGradient, m})) {
        return false;
      }
    }
    return true;
  };
  std::vector<std::size_t> next(schedule.ranks.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const std::vector<Task>& order = schedule.ranks[rank];
      if (next[rank] == order.size() || !ready(order[next[rank]])) continue;
      done.insert(order[next[rank]++]);
      moved = true;
    }
  }
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    if (next[rank] != schedule.ranks[rank].size()) return false;
  }
  return true;
}

/// The most activations that a rank holds at once when it runs its order: F
/// takes one; B, or the W of a split backward, gives it back.
inline int peak_in_flight(const std::vector<Task>& order) {
  int held = 0;
  int peak = 0;
  for (const Task& task : order) {
    if (task.kind == Kind::kForward) peak = std::max(peak, ++held);
    if (task.kind == Kind::kBackward || task.kind == Kind::kWeightGradient) --held;
  }
  return peak;
}

}  // namespace rrfp::testing
