#include "executor/call_guard.h"

#include <algorithm>

namespace rrfp {

void CallGuard::reset() {
  inputs_.clear();
  notices_.clear();
  votes_.clear();
  outputs_.clear();
  running_.clear();
  announced_.clear();
  sent_.clear();
  now_ns_ = 0;
}

bool CallGuard::of_this_rank(TaskId task) const {
  const Program& program = world_->program();
  return task != kNoTask && program.rank_of(program.stage_of(task)) == place_.rank;
}

std::optional<std::string> CallGuard::refuse_input(const CoreCall& call, bool notice) {
  const Program& program = world_->program();
  if (!of_this_rank(call.task)) return "the task is not of this rank";
  const int stage = program.stage_of(call.task);
  const Slot slot = program.slot_of(call.task);
  bool known = false;
  if (slot == Slot::kForward && program.predecessors(stage).empty()) {
    known = call.other == RankScheduler::kRootInput && !notice;
  } else if (slot != Slot::kWeight && call.other >= 0 && call.other < program.stages()) {
    const Kind kind = slot == Slot::kForward ? Kind::kForward : Kind::kBackward;
    const EdgeId edge = program.find_edge(kind, call.other, stage);
    known = edge >= 0 && program.edge(edge).crosses();
  }
  if (!known) return "the task has no such input";
  const std::pair<TaskId, int> input(call.task, call.other);
  if (!(notice ? notices_ : inputs_).insert(input).second) return "it has been told before";
  return std::nullopt;
}

std::optional<std::string> CallGuard::refuse_vote(const CoreCall& call) {
  const Program& program = world_->program();
  const int messages = static_cast<int>(program.edges().size()) * program.microbatches();
  if (place_.lane != 0 || world_->leader_decides_alone() || call.other < 0 ||
      call.other >= messages || call.flag >= world_->input().tensor_parallel.lanes) {
    return "there is no such vote";
  }
  if (!votes_.insert({call.other, call.flag}).second) return "the lane has voted before";
  return std::nullopt;
}

bool CallGuard::is_outgoing_activation(EdgeId id) const {
  const Program& program = world_->program();
  if (id < 0 || id >= static_cast<EdgeId>(program.edges().size())) return false;
  const Edge& edge = program.edge(id);
  return edge.kind == Kind::kForward && edge.crosses() && edge.from_rank == place_.rank &&
         world_->input().network.mode == NetworkMode::kEager;
}

std::optional<std::string> CallGuard::refuse_credits(const CoreCall& call) {
  if (!is_outgoing_activation(call.other)) return "the edge has no credits here";
  const auto of_edge = [&](const auto& set) {
    return std::count_if(set.begin(), set.end(),
                         [&](const auto& entry) { return entry.first == call.other; });
  };
  switch (call.kind) {
    case CoreCall::Kind::kOutput:
      if (call.value < 0 || call.value >= world_->program().microbatches()) {
        return "there is no such microbatch";
      }
      if (!outputs_.insert({call.other, call.value}).second) return "the output was there before";
      return std::nullopt;
    case CoreCall::Kind::kNext:
      if (call.value >= 0) sent_.insert({call.other, call.value});
      return std::nullopt;
    default:
      // Every credit that comes back was taken by a message.
      if (of_edge(sent_) == 0) return "no credit of the edge was taken";
      sent_.erase(std::find_if(sent_.begin(), sent_.end(),
                               [&](const auto& entry) { return entry.first == call.other; }));
      return std::nullopt;
  }
}

std::optional<std::string> CallGuard::refuse(const CoreCall& call, const CoreMachines& machines) {
  using Of = CoreCall::Kind;
  const bool on_scheduler = call.kind == Of::kInput || call.kind == Of::kNotice ||
                            call.kind == Of::kFinished || call.kind == Of::kExpected ||
                            call.kind == Of::kDecide;
  if (on_scheduler && !machines.decides()) return "this lane has no scheduler";
  const bool in_sequence = call.kind == Of::kAnnounced || call.kind == Of::kLaunch;
  if (in_sequence && !machines.has_sequence()) return "this rank has one lane";
  switch (call.kind) {
    case Of::kInput:
      return refuse_input(call, false);
    case Of::kNotice:
      return refuse_input(call, true);
    case Of::kFinished:
      if (running_.erase(call.task) == 0) return "the task is not running";
      if (call.at_ns < now_ns_) return "time goes back";
      now_ns_ = call.at_ns;
      return std::nullopt;
    case Of::kExpected: {
      const bool known = call.other >= 0 && call.other < world_->program().stages() &&
                         world_->program().rank_of(call.other) == place_.rank && call.flag <= 3;
      if (!known) return "the rank has no such stage and kind";
      return std::nullopt;
    }
    case Of::kDecide:
      if (call.at_ns < now_ns_) return "time goes back";
      if (machines.scheduler().held() >= world_->input().queue_depth) return "the queue is full";
      now_ns_ = call.at_ns;
      return std::nullopt;
    case Of::kVote:
      return refuse_vote(call);
    case Of::kAnnounced:
      if (call.value != machines.announced()) return "the sequence has a gap";
      if (!of_this_rank(call.task) || !announced_.insert(call.task).second) {
        return "the task was announced before, or is not of this rank";
      }
      return std::nullopt;
    case Of::kLaunch:
      if (machines.front() == kNoTask) return "nothing is announced";
      return std::nullopt;
    case Of::kOutput:
    case Of::kCredit:
    case Of::kNext:
      return refuse_credits(call);
    case Of::kToldOf:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace rrfp
