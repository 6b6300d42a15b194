#include "sim/launch_program.h"

#include <algorithm>

#include "scheduler_core/check.h"

namespace rrfp {

LaunchRankBuilder::LaunchRankBuilder(const Case& input, int rank)
    : input_(input),
      program_(input.program),
      number_(rank),
      memory_(input.program, rank, {input.memory.activation_bytes, input.memory.weight_stash_bytes},
              input.memory.budget_bytes.empty() ? std::nullopt : input.memory.budget_bytes[rank]),
      delay_to_ns_(input.program.ranks()),
      ran_(input.program.task_ids()),
      received_(input.program.edges().size() * input.program.microbatches()) {
  for (const LinkDelay& delay : input_.network.link_delays) {
    if (delay.from_rank == rank) delay_to_ns_[delay.to_rank] = delay.ns;
  }
}

bool LaunchRankBuilder::can_start(TaskId task) const {
  const int stage = program_.stage_of(task);
  const int microbatch = program_.microbatch_of(task);
  const Slot slot = program_.slot_of(task);
  if (slot == Slot::kBackward && !ran_[program_.task_id(stage, Slot::kForward, microbatch)]) {
    return false;
  }
  if (slot == Slot::kWeight && !ran_[program_.task_id(stage, Slot::kBackward, microbatch)]) {
    return false;
  }
  if (program_.ordered_accumulation() && program_.accumulates(task) && microbatch > 0) {
    if (!ran_[program_.accumulation_of(stage, microbatch - 1)]) return false;
  }
  for (const EdgeId id : program_.edges_to(stage, slot)) {
    const Edge& edge = program_.edge(id);
    const bool there = edge.local() ? ran_[program_.task_id(edge.from, edge.slot(), microbatch)]
                                    : received_[id * program_.microbatches() + microbatch];
    if (!there) return false;
  }
  return true;
}

/// A rank runs one task at a time and nothing else frees its memory, so what is
/// held when a task starts follows from the order alone.
bool LaunchRankBuilder::account(TaskId task) {
  const int stage = program_.stage_of(task);
  const int microbatch = program_.microbatch_of(task);
  const auto stages = program_.stages_of(number_);
  const int local =
      static_cast<int>(std::find(stages.begin(), stages.end(), stage) - stages.begin());
  if (program_.slot_of(task) == Slot::kForward) {
    if (!memory_.admits(local, microbatch)) return false;
    memory_.take(local, microbatch);
  }
  memory_.give_back(local, microbatch, returned_by(program_, task));
  return true;
}

LaunchRank LaunchRankBuilder::take() {
  rank_.peak_bytes = memory_.peak_bytes();
  return std::move(rank_);
}

void LaunchRankBuilder::compute(std::span<const TaskId> tasks) {
  if (stuck()) return;
  RRFP_CHECK(!tasks.empty());
  LaunchAction action{.kind = LaunchKind::kCompute,
                      .stream = kComputeStream,
                      .first = static_cast<int>(rank_.tasks.size()),
                      .host_ns = input_.dispatch_ns};
  for (const TaskId task : tasks) {
    if (!can_start(task)) {
      rank_.stuck = IdleCause::kOrder;
      break;
    }
    const int stage = program_.stage_of(task);
    const bool root =
        program_.slot_of(task) == Slot::kForward && program_.predecessors(stage).empty();
    if (root && !input_.input_ready_ns.empty()) {
      action.not_before_ns = input_.input_ready_ns[program_.microbatch_of(task)];
    }
    if (!account(task)) {
      rank_.stuck = IdleCause::kMemory;
      break;
    }
    action.length_ns += input_.duration_ns[task];
    rank_.tasks.push_back(task);
    ran_[task] = true;
  }
  action.last = static_cast<int>(rank_.tasks.size());
  if (action.last > action.first) rank_.actions.push_back(action);
}

std::int64_t LaunchRankBuilder::delay_of(const LaunchOperation& operation) const {
  if (!operation.sends) return 0;
  return delay_to_ns_[program_.edge(operation.message / program_.microbatches()).to_rank];
}

bool LaunchRankBuilder::has_run(const LaunchOperation& send) const {
  const Edge& edge = program_.edge(send.message / program_.microbatches());
  const int microbatch = send.message % program_.microbatches();
  return ran_[program_.task_id(edge.from, edge.slot(), microbatch)];
}

void LaunchRankBuilder::communicate(std::span<const LaunchOperation> operations, int stream) {
  if (stuck() || operations.empty()) return;
  for (const LaunchOperation& operation : operations) {
    if (operation.sends && !has_run(operation)) {
      rank_.stuck = IdleCause::kOrder;
      return;
    }
  }
  for (const LaunchOperation& operation : operations) {
    if (const std::int64_t delay_ns = delay_of(operation); delay_ns > 0) {
      rank_.actions.push_back(
          {.kind = LaunchKind::kDelay, .stream = stream, .length_ns = delay_ns});
    }
  }
  LaunchAction action{.kind = LaunchKind::kCommunicate,
                      .stream = stream,
                      .first = static_cast<int>(rank_.operations.size())};
  rank_.operations.insert(rank_.operations.end(), operations.begin(), operations.end());
  action.last = static_cast<int>(rank_.operations.size());
  rank_.actions.push_back(action);
}

void LaunchRankBuilder::wait(int first, int last) {
  if (stuck()) return;
  LaunchAction action{.kind = LaunchKind::kWait,
                      .stream = kComputeStream,
                      .first = static_cast<int>(rank_.waited.size())};
  for (int waited = first; waited < last; ++waited) {
    const LaunchAction& other = rank_.actions[waited];
    if (other.kind != LaunchKind::kCommunicate) continue;
    rank_.waited.push_back(waited);
    for (int i = other.first; i < other.last; ++i) {
      const LaunchOperation& operation = rank_.operations[i];
      if (!operation.sends) received_[operation.message] = true;
    }
  }
  action.last = static_cast<int>(rank_.waited.size());
  if (action.last > action.first) rank_.actions.push_back(action);
}

}  // namespace rrfp
