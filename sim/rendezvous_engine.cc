#include "sim/rendezvous_engine.h"

#include <algorithm>

#include "sim/idle_cause_of.h"
#include "sim/run_end.h"

namespace rrfp {

RendezvousEngine::RendezvousEngine(const PreparedCase& prepared)
    : prepared_(prepared),
      program_(prepared.program()),
      microbatches_(program_.microbatches()),
      ranks_(static_cast<std::size_t>(program_.ranks())),
      transfers_(program_.edges().size() * static_cast<std::size_t>(microbatches_)),
      events_(program_.ranks()),
      idle_(program_.ranks()) {
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    RankSchedulerConfig config = prepared.scheduler_config(rank);
    config.queue_depth = 1;
    config.anticipation.reset();
    schedulers_.emplace_back(program_, prepared.schedule(), config);
  }
}

SimulationResult RendezvousEngine::run() {
  run_once(NextEventTree::kNever);
  if (!all_finished(schedulers_)) run_once(makespan_ns_);  // idle time up to the last end
  idle_.close(makespan_ns_);
  result_.completed = all_finished(schedulers_);
  result_.makespan_ns = makespan_ns_;
  result_.arrangement = prepared_.arrangement();
  if (!result_.completed) result_.blocked = undecided_tasks(program_, schedulers_);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankScheduler& scheduler = schedulers_[rank];
    result_.ranks[rank].peak_bytes = scheduler.admission().peak_bytes();
    result_.ranks[rank].idle_ns = idle_.of(static_cast<int>(rank));
  }
  return std::move(result_);
}

void RendezvousEngine::reset() {
  events_.reset();
  makespan_ns_ = 0;
  result_ = SimulationResult{};
  result_.ranks.resize(ranks_.size());
  for (RankScheduler& scheduler : schedulers_) scheduler.reset();
  std::fill(transfers_.begin(), transfers_.end(), Transfer{});
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    RankState& state = at(rank) = RankState{};
    for (const RootInput& input : prepared_.root_inputs(rank)) state.inputs.insert(input);
    state.root_inputs = static_cast<int>(prepared_.root_inputs(rank).size());
  }
}

void RendezvousEngine::run_once(std::int64_t clip_ns) {
  reset();
  idle_.reset(clip_ns);
  for (int rank = 0; rank < program_.ranks(); ++rank) post_phase(rank, 0);
  while (events_.least() != NextEventTree::kNever) {
    const std::int64_t now_ns = events_.least();
    int rank = -1;
    events_.each_least([&rank](int least) { rank = rank < 0 ? least : rank; });
    events_.set(rank, NextEventTree::kNever);
    wake(rank, now_ns);
  }
}

void RendezvousEngine::wake(int rank, std::int64_t now_ns) {
  switch (at(rank).state) {
    case State::kRunning:
      finish_task(rank, now_ns);
      break;
    case State::kPhase:
      end_phase(rank, now_ns);
      break;
    case State::kWaiting:
      decide(rank, now_ns);
      break;
  }
}

TaskId RendezvousEngine::task_at(int rank, int position) const {
  const RankScheduler& scheduler = schedulers_[static_cast<std::size_t>(rank)];
  if (position < 0 || position >= scheduler.size()) return kNoTask;
  return scheduler.task_at(position);
}

// Posts the sends of the last task's outputs and the receives of the next
// one's inputs.
void RendezvousEngine::post_phase(int rank, std::int64_t now_ns) {
  RankState& state = at(rank);
  state.state = State::kPhase;
  state.phase_end_ns = now_ns;
  state.open_transfers = 1;  // held open until all are posted
  if (const TaskId done = task_at(rank, state.position); done != kNoTask) {
    const int microbatch = program_.microbatch_of(done);
    for (const EdgeId id : program_.edges_from(program_.stage_of(done), program_.slot_of(done))) {
      if (!program_.edge(id).local()) post(rank, id, microbatch, now_ns);
    }
  }
  if (const TaskId next = task_at(rank, state.position + 1); next != kNoTask) {
    for (const EdgeId id : program_.edges_to(program_.stage_of(next), program_.slot_of(next))) {
      if (program_.edge(id).local()) continue;
      post(rank, id, program_.microbatch_of(next), now_ns);
    }
  }
  note_idle(rank, now_ns);
  end_transfer(rank, now_ns);
}

void RendezvousEngine::post(int rank, EdgeId id, int microbatch, std::int64_t now_ns) {
  ++at(rank).open_transfers;
  const auto message = static_cast<std::size_t>(id * microbatches_ + microbatch);
  Transfer& transfer = transfers_[message];
  if (transfer.posted_ns < 0) {
    transfer.posted_ns = now_ns;
    return;
  }
  const Edge& edge = program_.edge(id);
  const std::int64_t end_ns =
      now_ns + prepared_.busy_ns()[message] + prepared_.slowest_latency_ns()[message];
  result_.messages.push_back({id, microbatch, transfer.finished_ns, now_ns, end_ns});
  --at(edge.to_rank).in_flight;
  end_transfer(edge.from_rank, end_ns);
  end_transfer(edge.to_rank, end_ns);
}

void RendezvousEngine::end_transfer(int rank, std::int64_t end_ns) {
  RankState& state = at(rank);
  state.phase_end_ns = std::max(state.phase_end_ns, end_ns);
  if (--state.open_transfers == 0) events_.set(rank, state.phase_end_ns);
}

void RendezvousEngine::end_phase(int rank, std::int64_t now_ns) {
  RankState& state = at(rank);
  makespan_ns_ = std::max(makespan_ns_, now_ns);
  state.state = State::kWaiting;
  const TaskId next = task_at(rank, state.position + 1);
  if (next == kNoTask) return;
  for (const EdgeId id : program_.edges_to(program_.stage_of(next), program_.slot_of(next))) {
    const Edge& edge = program_.edge(id);
    if (!edge.local()) schedulers_[static_cast<std::size_t>(rank)].on_input(next, edge.from);
  }
  decide(rank, now_ns);
}

void RendezvousEngine::decide(int rank, std::int64_t now_ns) {
  RankState& state = at(rank);
  RankScheduler& scheduler = schedulers_[static_cast<std::size_t>(rank)];
  state.inputs.drain(now_ns, [&](const RootInput& input) {
    --state.root_inputs;
    scheduler.on_input(input.task, RankScheduler::kRootInput);
  });
  const Decision decision = scheduler.decide(now_ns);
  state.reason = decision.reason;
  if (decision.action != Decision::Action::kStart) {
    note_idle(rank, now_ns);
    events_.set(rank, state.inputs.next_ns());
    return;
  }
  const std::int64_t start_ns = now_ns + prepared_.start_delay_ns();
  const std::int64_t length_ns = prepared_.duration_ns()[static_cast<std::size_t>(decision.task)];
  const std::int64_t end_ns = start_ns + length_ns;
  idle_.decided(rank, now_ns, state.last_end_ns, start_ns, end_ns);
  RankResult& record = result_.ranks[static_cast<std::size_t>(rank)];
  record.order.push_back(program_.task(decision.task));
  record.decided_ns.push_back(now_ns);
  record.start_ns.push_back(start_ns);
  record.end_ns.push_back(end_ns);
  record.busy_ns += length_ns;
  makespan_ns_ = std::max(makespan_ns_, end_ns);
  state.state = State::kRunning;
  state.last_end_ns = end_ns;
  ++state.position;
  events_.set(rank, end_ns);
}

void RendezvousEngine::finish_task(int rank, std::int64_t now_ns) {
  const TaskId task = task_at(rank, at(rank).position);
  schedulers_[static_cast<std::size_t>(rank)].on_finished(task, now_ns);
  const int microbatch = program_.microbatch_of(task);
  for (const EdgeId id : program_.edges_from(program_.stage_of(task), program_.slot_of(task))) {
    const Edge& edge = program_.edge(id);
    if (edge.local()) continue;
    transfers_[static_cast<std::size_t>(id * microbatches_ + microbatch)].finished_ns = now_ns;
    RankState& to = at(edge.to_rank);
    ++to.in_flight;
    if (to.state != State::kRunning) note_idle(edge.to_rank, now_ns);
  }
  post_phase(rank, now_ns);
}

void RendezvousEngine::note_idle(int rank, std::int64_t now_ns) {
  const RankState& state = at(rank);
  idle_.idle(
      rank,
      idle_cause_of(schedulers_[static_cast<std::size_t>(rank)], state.state == State::kPhase,
                    state.reason, state.in_flight, state.root_inputs),
      now_ns);
}

}  // namespace rrfp
