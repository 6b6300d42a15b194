#include "sim/launch_batched.h"

#include <algorithm>
#include <string>

namespace rrfp {

namespace {

/// One rank's order: forwards and backwards apart, and which W follow each.
struct RankOrder {
  struct Step {
    TaskId task = kNoTask;
    std::vector<TaskId> weights;  ///< that stand directly behind it
  };
  std::vector<Step> forwards;
  std::vector<Step> backwards;
  std::vector<TaskId> weights_first;  ///< W before anything else
  std::vector<bool> is_forward;       ///< in order, W left out
  int leading = 0;                    ///< forwards before the first backward
};

bool is_chain(const Program& program) {
  if (!program.one_stage_per_rank()) return false;
  for (int stage = 0; stage < program.stages(); ++stage) {
    const auto before = program.predecessors(stage);
    if (before.size() != (stage > 0 ? 1U : 0U)) return false;
    if (stage > 0 && before.front() != stage - 1) return false;
  }
  return true;
}

/// The number of warm-up forwards of each rank. An order with every F first
/// may be all warm-up or end its warm-up one forward earlier, with one steady
/// round: only the formula of the schedule tells, so where all ranks agree
/// with 1f1b's (or eager-1f1b's, twice as many) that decides.
std::vector<int> warmups_of(const std::vector<RankOrder>& orders) {
  const int ranks = static_cast<int>(orders.size());
  std::vector<int> warmups(orders.size());
  for (const int pace : {1, 2}) {
    bool agrees = true;
    for (int rank = 0; rank < ranks; ++rank) {
      const RankOrder& order = orders[rank];
      const int forwards = static_cast<int>(order.forwards.size());
      const int warmup = std::min(forwards, pace * (ranks - 1 - rank));
      warmups[rank] = warmup;
      if (order.leading != std::min(forwards, warmup + 1)) agrees = false;
      if (order.backwards.empty() && warmup < forwards) agrees = false;
    }
    if (agrees) return warmups;
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const RankOrder& order = orders[rank];
    const bool all_first = order.leading == static_cast<int>(order.forwards.size());
    warmups[rank] = all_first ? order.leading : order.leading - 1;
  }
  return warmups;
}

/// Whether the order is `warmup` forwards, then F and backward in turn while
/// there are forwards, then the remaining backwards.
bool has_shape(const RankOrder& order, int warmup) {
  const int rounds = static_cast<int>(order.forwards.size()) - warmup;
  if (warmup < 0 || static_cast<int>(order.backwards.size()) < rounds) return false;
  for (int i = 0; i < static_cast<int>(order.is_forward.size()); ++i) {
    const bool steady = i >= warmup && i < warmup + 2 * rounds;
    const bool forward = i < warmup || (steady && (i - warmup) % 2 == 0);
    if (order.is_forward[i] != forward) return false;
  }
  return true;
}

class BatchedRank {
 public:
  BatchedRank(const Case& input, const RankOrder& order, int rank)
      : program_(input.program), order_(order), builder_(input, rank) {
    for (std::size_t id = 0; id < program_.edges().size(); ++id) {
      const Edge& edge = program_.edges()[id];
      if (!edge.crosses()) continue;
      const bool activation = edge.kind == Kind::kForward;
      if (edge.from_rank == rank) (activation ? send_next_ : send_prev_) = static_cast<EdgeId>(id);
      if (edge.to_rank == rank) (activation ? recv_prev_ : recv_next_) = static_cast<EdgeId>(id);
    }
  }

  LaunchRank lower(int warmup) {
    for (const TaskId& weight : order_.weights_first) builder_.compute({&weight, 1});
    const int forwards = static_cast<int>(order_.forwards.size());
    const int backwards = static_cast<int>(order_.backwards.size());
    const int rounds = forwards - warmup;
    for (int i = 0; i < warmup; ++i) {
      step({{recv_prev_, forward(i), false}});
      run(order_.forwards[i], {{send_next_, forward(i), true}});
    }
    if (rounds > 0) step({{recv_prev_, forward(warmup), false}});
    for (int i = 0; i < rounds; ++i) {
      run(order_.forwards[warmup + i],
          {{send_next_, forward(warmup + i), true}, {recv_next_, backward(i), false}});
      std::vector<Transfer> transfers = {{send_prev_, backward(i), true}};
      if (i + 1 < rounds) transfers.push_back({recv_prev_, forward(warmup + i + 1), false});
      run(order_.backwards[i], transfers);
    }
    for (int i = rounds; i < backwards; ++i) {
      step({{recv_next_, backward(i), false}});
      run(order_.backwards[i], {{send_prev_, backward(i), true}});
    }
    return builder_.take();
  }

 private:
  struct Transfer {
    EdgeId edge = kNoEdge;
    int microbatch = 0;
    bool sends = false;
  };
  static constexpr EdgeId kNoEdge = -1;

  int forward(int i) const { return program_.microbatch_of(order_.forwards[i].task); }
  int backward(int i) const { return program_.microbatch_of(order_.backwards[i].task); }

  void run(const RankOrder::Step& computed, const std::vector<Transfer>& transfers) {
    builder_.compute({&computed.task, 1});
    step(transfers);
    for (const TaskId& weight : computed.weights) builder_.compute({&weight, 1});
  }

  void step(const std::vector<Transfer>& transfers) {
    std::vector<LaunchOperation> operations;
    for (const Transfer& transfer : transfers) {
      if (transfer.edge == kNoEdge) continue;
      operations.push_back(
          {transfer.edge * program_.microbatches() + transfer.microbatch, transfer.sends});
    }
    const int first = builder_.size();
    builder_.communicate(operations, kBatchedStream);
    builder_.wait(first, builder_.size());
  }

  const Program& program_;
  const RankOrder& order_;
  LaunchRankBuilder builder_;
  EdgeId send_prev_ = kNoEdge;
  EdgeId recv_prev_ = kNoEdge;
  EdgeId send_next_ = kNoEdge;
  EdgeId recv_next_ = kNoEdge;
};

RankOrder split_order(const Program& program, const std::vector<Task>& tasks) {
  RankOrder order;
  std::vector<TaskId>* weights = &order.weights_first;
  for (const Task& task : tasks) {
    const TaskId id = program.find(task);
    RRFP_CHECK(id != kNoTask);
    if (program.slot_of(id) == Slot::kWeight) {
      weights->push_back(id);
      continue;
    }
    const bool forward = program.slot_of(id) == Slot::kForward;
    RankOrder::Step& step = (forward ? order.forwards : order.backwards).emplace_back();
    step.task = id;
    weights = &step.weights;
    if (forward && order.backwards.empty()) ++order.leading;
    order.is_forward.push_back(forward);
  }
  return order;
}

}  // namespace

Result<LaunchProgram> lower_batched(const Case& input, const Schedule& order) {
  const Program& program = input.program;
  if (!is_chain(program)) {
    return Error{
        "launch-queue communication in batches needs a chain with one stage per rank, stage r on "
        "rank r after stage r-1"};
  }
  std::vector<RankOrder> orders;
  for (const std::vector<Task>& tasks : order.ranks) orders.push_back(split_order(program, tasks));
  const std::vector<int> warmups = warmups_of(orders);
  LaunchProgram lowered = empty_launch_program(input);
  for (int rank = 0; rank < program.ranks(); ++rank) {
    if (!has_shape(orders[rank], warmups[rank])) {
      return Error{"launch-queue communication in batches: the order of rank " +
                   std::to_string(rank) +
                   " must be forwards, then forward and backward in turn, then the remaining "
                   "backwards"};
    }
    lowered.ranks.push_back(BatchedRank(input, orders[rank], rank).lower(warmups[rank]));
  }
  return lowered;
}

}  // namespace rrfp
