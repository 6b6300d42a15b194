#include "executor/core_machines.h"

#include <algorithm>
#include <utility>

namespace rrfp {

CoreMachines::CoreMachines(const PreparedCase& world, const Place& place,
                           const CoreOptions& options)
    : options_(options), microbatches_(world.program().microbatches()) {
  const Program& program = world.program();
  const int lanes = world.input().tensor_parallel.lanes;
  const bool eager = world.input().network.mode == NetworkMode::kEager;
  if (place.lane == 0 || !eager) {
    RankSchedulerConfig config = world.scheduler_config(place.rank);
    config.adapt_expected = options.adapt_expected;
    if (!eager) {
      config.queue_depth = 1;
      config.anticipation.reset();
    }
    scheduler_.emplace(program, world.schedule(), config);
  }
  if (lanes > 1 && eager) {
    if (place.lane == 0 && !world.leader_decides_alone()) {
      vote_.emplace(static_cast<int>(program.edges().size()) * microbatches_, lanes);
    }
    sequence_.emplace(static_cast<int>(program.tasks_of_rank(place.rank).size()));
  }
  credits_of_.assign(program.edges().size(), -1);
  const int credits = options.credits > 0 ? options.credits : microbatches_;
  for (std::size_t id = 0; id < program.edges().size(); ++id) {
    const Edge& edge = program.edges()[id];
    if (!eager || edge.kind != Kind::kForward || !edge.crosses()) continue;
    if (edge.from_rank != place.rank) continue;
    credits_of_[id] = static_cast<int>(credits_.size());
    credits_.emplace_back(microbatches_, credits, rule_for(program));
  }
}

void CoreMachines::reset() {
  last_reason_ = WaitReason::kNone;
  if (scheduler_) scheduler_->reset();
  if (vote_) vote_->reset();
  if (sequence_) sequence_->reset();
  for (EdgeCredits& edge : credits_) edge.reset();
}

void CoreMachines::on_input(TaskId task, int producer) {
  record({.kind = CoreCall::Kind::kInput, .other = producer, .task = task});
  scheduler_->on_input(task, producer);
}

void CoreMachines::on_notice(TaskId task, int producer, std::int64_t eta_ns) {
  record({.kind = CoreCall::Kind::kNotice, .other = producer, .task = task, .value = eta_ns});
  scheduler_->on_notice(task, producer, eta_ns);
}

void CoreMachines::on_finished(TaskId task, std::int64_t now_ns) {
  record({.kind = CoreCall::Kind::kFinished, .task = task, .at_ns = now_ns});
  scheduler_->on_finished(task, now_ns);
}

void CoreMachines::on_expected(int stage, Kind kind, std::int64_t ns) {
  record({.kind = CoreCall::Kind::kExpected,
          .flag = static_cast<std::uint8_t>(kind),
          .other = stage,
          .value = ns});
  scheduler_->on_expected(stage, kind, ns);
}

Decision CoreMachines::decide(std::int64_t now_ns) {
  if (!options_.record) {
    const Decision decision = scheduler_->decide(now_ns);
    last_reason_ = decision.reason;
    return decision;
  }
  CoreCall call;
  call.kind = CoreCall::Kind::kDecide;
  call.at_ns = now_ns;
  call.candidates.fill(kNoTask);
  call.candidate_count = static_cast<std::uint8_t>(scheduler_->ready(call.candidates));
  const Decision decision = scheduler_->decide(now_ns);
  last_reason_ = decision.reason;
  call.action = decision.action;
  call.reason = decision.reason;
  call.task = decision.task;
  call.value = decision.until_ns;
  calls_.push_back(call);
  if (decision.action == Decision::Action::kStart) {
    for (const Notice& notice : scheduler_->notices()) {
      calls_.push_back({.kind = CoreCall::Kind::kToldOf,
                        .other = notice.to_rank,
                        .task = notice.task,
                        .value = notice.eta_ns});
    }
  }
  return decision;
}

bool CoreMachines::on_lane(EdgeId edge, int microbatch, int lane) {
  const int message = edge * microbatches_ + microbatch;
  const bool arrived = vote_->on_lane(message, lane);
  record({.kind = CoreCall::Kind::kVote,
          .flag = static_cast<std::uint8_t>(lane),
          .other = message,
          .answer = arrived});
  return arrived;
}

void CoreMachines::on_announced(std::int64_t sequence, TaskId task) {
  record({.kind = CoreCall::Kind::kAnnounced, .task = task, .value = sequence});
  sequence_->on_announced(sequence, task);
}

std::int64_t CoreMachines::pop() {
  const TaskId task = sequence_->front();
  const std::int64_t sequence = sequence_->pop();
  record({.kind = CoreCall::Kind::kLaunch, .task = task, .value = sequence});
  return sequence;
}

EdgeCredits& CoreMachines::credits(EdgeId edge) {
  const int index = credits_of_[static_cast<std::size_t>(edge)];
  RRFP_CHECK(index >= 0);
  return credits_[static_cast<std::size_t>(index)];
}

void CoreMachines::on_output(EdgeId edge, int microbatch) {
  record({.kind = CoreCall::Kind::kOutput, .other = edge, .value = microbatch});
  credits(edge).on_output(microbatch);
}

void CoreMachines::on_credit(EdgeId edge) {
  record({.kind = CoreCall::Kind::kCredit, .other = edge});
  credits(edge).on_credit();
}

int CoreMachines::next(EdgeId edge) {
  const int microbatch = credits(edge).next();
  record({.kind = CoreCall::Kind::kNext, .other = edge, .value = microbatch});
  return microbatch;
}

bool CoreMachines::any_output_waits() const {
  return std::any_of(credits_.begin(), credits_.end(),
                     [](const EdgeCredits& edge) { return edge.waits(); });
}

std::vector<CoreCall> CoreMachines::take_calls() { return std::exchange(calls_, {}); }

}  // namespace rrfp
