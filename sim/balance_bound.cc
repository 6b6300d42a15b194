#include "sim/balance_bound.h"

#include <algorithm>
#include <limits>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

/// The quickest ways of one microbatch through a pipeline.
class Paths {
 public:
  Paths(const Case& input, int microbatch)
      : input_(input), program_(input.program), microbatch_(microbatch) {}

  /// By stage: from the start to the start of its F.
  std::vector<std::int64_t> before_ns() const {
    std::vector<std::int64_t> before(static_cast<std::size_t>(program_.stages()), 0);
    for (int stage = 0; stage < program_.stages(); ++stage) {
      for (const int from : program_.predecessors(stage)) {
        before[stage] = std::max(before[stage], before[from] + length_ns(from, Slot::kForward) +
                                                    transfer_ns(Kind::kForward, from, stage));
      }
    }
    return before;
  }

  /// By stage: from the end of its backward to the last backward after it.
  std::vector<std::int64_t> after_ns() const {
    std::vector<std::int64_t> after(static_cast<std::size_t>(program_.stages()), 0);
    for (int stage = 0; stage < program_.stages(); ++stage) {
      for (const int to : program_.predecessors(stage)) {
        const EdgeId edge = program_.find_edge(Kind::kBackward, stage, to);
        if (edge < 0 || !program_.edge(edge).carries) continue;
        after[stage] = std::max(after[stage], transfer_ns(Kind::kBackward, stage, to) +
                                                  length_ns(to, Slot::kBackward) + after[to]);
      }
    }
    return after;
  }

 private:
  std::int64_t length_ns(int stage, Slot slot) const {
    return input_.duration_ns[program_.task_id(stage, slot, microbatch_)];
  }

  std::int64_t transfer_ns(Kind kind, int from, int to) const {
    const EdgeId edge = program_.find_edge(kind, from, to);
    if (edge < 0 || input_.network.latency_ns.empty()) return 0;
    const std::vector<std::int64_t>& of_edge = input_.network.latency_ns[edge];
    return of_edge.empty() ? 0 : of_edge[microbatch_];
  }

  const Case& input_;
  const Program& program_;
  int microbatch_;
};

}  // namespace

void BalanceBound::add(const Case& replica) {
  const Program& program = replica.program;
  if (replicas_++ == 0) {
    const std::int64_t none = std::numeric_limits<std::int64_t>::max();
    ranks_.assign(static_cast<std::size_t>(program.ranks()), Rank{0, none, none});
    int roots = 0;
    for (int stage = 0; stage < program.stages(); ++stage) {
      if (!program.predecessors(stage).empty()) continue;
      ++roots;
      first_rank_ = program.rank_of(stage);
    }
    if (roots > 1) first_rank_ = -1;
  }
  RRFP_CHECK(static_cast<int>(ranks_.size()) == program.ranks());
  // The table counts, not the tasks: a fused backward has its length in two
  // entries of it, or in one.
  for (std::size_t id = 0; id < replica.duration_ns.size(); ++id) {
    ranks_[program.rank_of(program.stage_of(static_cast<TaskId>(id)))].work_ns +=
        replica.duration_ns[id];
  }
  for (int microbatch = 0; microbatch < program.microbatches(); ++microbatch) {
    const Paths paths(replica, microbatch);
    const std::vector<std::int64_t> before_ns = paths.before_ns();
    const std::vector<std::int64_t> after_ns = paths.after_ns();
    for (int stage = 0; stage < program.stages(); ++stage) {
      Rank& rank = ranks_[program.rank_of(stage)];
      rank.before_ns = std::min(rank.before_ns, before_ns[stage]);
      // With a split backward, or none, the last task may be one that nobody
      // waits for.
      const bool goes_on =
          !program.split_backward() && program.backward_of(stage) == Backward::kFull;
      rank.after_ns = std::min(rank.after_ns, goes_on ? after_ns[stage] : 0);
    }
  }
}

std::vector<std::int64_t> BalanceBound::end_ns() const {
  RRFP_CHECK(replicas_ > 0);
  std::vector<std::int64_t> ends_ns;
  std::int64_t last_ns = 0;
  for (const Rank& rank : ranks_) {
    const bool empty = rank.before_ns == std::numeric_limits<std::int64_t>::max();
    ends_ns.push_back(empty ? 0 : rank.before_ns + rank.work_ns / replicas_);
    last_ns = std::max(last_ns, ends_ns.back() + (empty ? 0 : rank.after_ns));
  }
  if (first_rank_ >= 0) ends_ns[first_rank_] = std::max(ends_ns[first_rank_], last_ns);
  return ends_ns;
}

std::vector<std::int64_t> BalanceBound::work_ns() const {
  RRFP_CHECK(replicas_ > 0);
  std::vector<std::int64_t> work_ns;
  for (const Rank& rank : ranks_) work_ns.push_back(rank.work_ns / replicas_);
  return work_ns;
}

}  // namespace rrfp
