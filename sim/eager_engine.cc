#include "sim/eager_engine.h"

#include <algorithm>

#include "sim/idle_cause_of.h"

namespace rrfp {

namespace {

int links_between(const Program& program) { return program.ranks() * program.ranks(); }

}  // namespace

EagerEngine::EagerEngine(const PreparedCase& prepared, const EngineDetail& detail)
    : prepared_(prepared),
      program_(prepared.program()),
      detail_(detail),
      microbatches_(program_.microbatches()),
      depth_(prepared.input().queue_depth),
      has_bandwidth_(prepared.input().network.bytes_per_second > 0),
      has_bytes_(!prepared.input().network.message_bytes.empty()),
      votes_(prepared.input().tensor_parallel.lanes > 1 && !prepared.leader_decides_alone()),
      leader_(prepared.leader_decides_alone()),
      ranks_(static_cast<std::size_t>(program_.ranks())),
      held_(static_cast<std::size_t>(program_.ranks() * depth_)),
      events_(program_.ranks()),
      idle_(program_.ranks()) {
  schedulers_.reserve(ranks_.size());
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    schedulers_.emplace_back(program_, prepared.schedule(), prepared.scheduler_config(rank));
  }
  round_.reserve(ranks_.size());
  group_end_ns_.resize(static_cast<std::size_t>(program_.stages() * kSlots));
  if (has_bandwidth_) link_free_ns_.resize(static_cast<std::size_t>(links_between(program_)));
  if (leader_) lanes_ready_ns_.resize(static_cast<std::size_t>(program_.task_ids()));
  build_outputs();
  if (detail_.tasks) {
    records_.resize(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto size = static_cast<std::size_t>(schedulers_[rank].size());
      records_[rank].order.reserve(size);
      records_[rank].decided_ns.reserve(size);
      records_[rank].start_ns.reserve(size);
      records_[rank].end_ns.reserve(size);
    }
  }
}

void EagerEngine::build_outputs() {
  std::vector<int> messages_to(ranks_.size(), 0);
  for (int stage = 0; stage < program_.stages(); ++stage) {
    for (const Slot slot : {Slot::kForward, Slot::kBackward, Slot::kWeight}) {
      first_output_.push_back(static_cast<std::int32_t>(outputs_.size()));
      for (const EdgeId id : program_.edges_from(stage, slot)) {
        const Edge& edge = program_.edge(id);
        if (edge.local()) continue;
        int& messages = messages_to[static_cast<std::size_t>(edge.to_rank)];
        outputs_.push_back({program_.task_id(edge.to, slot, 0), id, edge.to_rank, stage,
                            edge.from_rank * program_.ranks() + edge.to_rank, messages,
                            slot == Slot::kForward});
        messages += microbatches_;
      }
    }
  }
  first_output_.push_back(static_cast<std::int32_t>(outputs_.size()));
  if (!votes_) return;
  for (const int messages : messages_to) {
    arrival_votes_.emplace_back(messages, prepared_.input().tensor_parallel.lanes);
  }
}

void EagerEngine::run() {
  run_once(NextEventTree::kNever);
  // A blocked run ends with its last task, but messages may arrive later:
  // idle time is counted again, up to that end.
  if (!completed() && detail_.causes) run_once(makespan_ns_);
  if (detail_.causes) idle_.close(makespan_ns_);
}

void EagerEngine::run_once(std::int64_t clip_ns) {
  reset(clip_ns);
  for (int rank = 0; rank < program_.ranks(); ++rank) events_.set(rank, 0);
  while (events_.least() != NextEventTree::kNever) run_round(events_.least());
  for (RankState& state : ranks_) {
    state.transmissions.drain(NextEventTree::kNever, [&](const InboxBytes& added) {
      state.inbox_bytes += added.bytes;
      state.peak_inbox_bytes = std::max(state.peak_inbox_bytes, state.inbox_bytes);
    });
  }
}

void EagerEngine::reset(std::int64_t clip_ns) {
  events_.reset();
  makespan_ns_ = 0;
  for (RankScheduler& scheduler : schedulers_) scheduler.reset();
  for (ArrivalVote& vote : arrival_votes_) vote.reset();
  for (RankState& state : ranks_) {
    state.held = state.head = state.in_flight = state.root_inputs = 0;
    state.last_end_ns = state.busy_ns = state.inbox_bytes = state.peak_inbox_bytes = 0;
    state.wake_ns = NextEventTree::kNever;
    state.reason = WaitReason::kNotReady;
    state.arrivals.clear();
    state.notices.clear();
    state.transmissions.clear();
  }
  std::fill(link_free_ns_.begin(), link_free_ns_.end(), 0);
  std::fill(lanes_ready_ns_.begin(), lanes_ready_ns_.end(), 0);
  std::fill(group_end_ns_.begin(), group_end_ns_.end(), 0);
  for (RankResult& record : records_) {
    record.order.clear();
    record.decided_ns.clear();
    record.start_ns.clear();
    record.end_ns.clear();
  }
  messages_.clear();
  if (detail_.causes) idle_.reset(clip_ns);
  deliver_root_inputs();
}

void EagerEngine::deliver_root_inputs() {
  const std::vector<std::int64_t>& ready_ns = prepared_.input().input_ready_ns;
  for (int stage = 0; stage < program_.stages(); ++stage) {
    if (!program_.predecessors(stage).empty()) continue;
    const int rank = program_.rank_of(stage);
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    for (int m = 0; m < microbatches_; ++m) {
      const TaskId task = program_.task_id(stage, Slot::kForward, m);
      const std::int64_t time_ns = ready_ns.empty() ? 0 : ready_ns[static_cast<std::size_t>(m)];
      if (time_ns == 0) {
        schedulers_[static_cast<std::size_t>(rank)].on_input(task, RankScheduler::kRootInput);
      } else {
        state.arrivals.insert({time_ns, task, RankScheduler::kRootInput, -1, 0});
        ++state.root_inputs;
      }
    }
  }
}

void EagerEngine::run_round(std::int64_t now_ns) {
  ++round_number_;
  round_.clear();
  events_.each_least([this](int rank) { join_round(rank); });
  // Finishing may add ranks whose input arrives at this very instant.
  for (std::size_t i = 0; i < round_.size(); ++i) finish_tasks(round_[i], now_ns);
  for (const int rank : round_) deliver(rank, now_ns);
  for (const int rank : round_) decide(rank, now_ns);
  for (const int rank : round_) events_.set(rank, next_event_ns(rank));
}

void EagerEngine::join_round(int rank) {
  ranks_[static_cast<std::size_t>(rank)].round = round_number_;
  round_.push_back(rank);
}

void EagerEngine::finish_tasks(int rank, std::int64_t now_ns) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  while (state.held > 0 && held(rank, state.head).end_ns == now_ns) {
    const TaskId task = held(rank, state.head).task;
    --state.held;
    if (++state.head == depth_) state.head = 0;
    schedulers_[static_cast<std::size_t>(rank)].on_finished(task, now_ns);
    send_outputs(rank, task, now_ns);
  }
}

void EagerEngine::send_outputs([[maybe_unused]] int rank, TaskId task, std::int64_t now_ns) {
  const int group = task / microbatches_;
  const int microbatch = task - group * microbatches_;
  group_end_ns_[static_cast<std::size_t>(group)] = now_ns;
  const std::int32_t last = first_output_[static_cast<std::size_t>(group + 1)];
  for (std::int32_t i = first_output_[static_cast<std::size_t>(group)]; i < last; ++i) {
    send(outputs_[static_cast<std::size_t>(i)], microbatch, now_ns);
  }
}

void EagerEngine::send(const Output& output, int microbatch, std::int64_t now_ns) {
  const auto message = static_cast<std::size_t>(output.edge * microbatches_ + microbatch);
  RankState& to = ranks_[static_cast<std::size_t>(output.to_rank)];
  std::int64_t sent_ns = now_ns;
  std::int64_t end_ns = now_ns;
  if (has_bandwidth_) {
    std::int64_t& free_ns = link_free_ns_[static_cast<std::size_t>(output.link)];
    sent_ns = std::max(now_ns, free_ns);
    end_ns = sent_ns + prepared_.busy_ns()[message];
    free_ns = end_ns;
  }
  const std::int64_t arrival_ns = end_ns + prepared_.group_latency_ns()[message];
  if (has_bytes_ && output.activation) {
    count_in_inbox(to, prepared_.message_bytes()[message], sent_ns, now_ns);
  }
  if (detail_.messages) {
    messages_.push_back({output.edge, microbatch, now_ns, sent_ns, arrival_ns});
  }
  ++to.in_flight;
  std::int64_t first_ns = arrival_ns;
  if (votes_) {
    send_to_lanes(output, microbatch, end_ns);
    first_ns = to.arrivals.next_ns();
  } else {
    to.arrivals.insert({arrival_ns, output.task + microbatch, output.producer, -1, 0});
  }
  if (leader_) {
    std::int64_t& ready_ns = lanes_ready_ns_[static_cast<std::size_t>(output.task + microbatch)];
    ready_ns = std::max(ready_ns, end_ns + prepared_.slowest_latency_ns()[message]);
  }
  if (to.round == round_number_ || to.held == depth_) return;
  if (detail_.causes && to.held == 0) note_idle(output.to_rank, now_ns);
  if (first_ns <= now_ns) {
    join_round(output.to_rank);
  } else if (first_ns < events_.at(output.to_rank)) {
    events_.set(output.to_rank, first_ns);
  }
}

void EagerEngine::send_to_lanes(const Output& output, int microbatch, std::int64_t end_ns) {
  RankState& to = ranks_[static_cast<std::size_t>(output.to_rank)];
  for (int lane = 0; lane < prepared_.input().tensor_parallel.lanes; ++lane) {
    const std::int64_t vote_ns = lane == 0 ? 0 : prepared_.vote_ns();
    to.arrivals.insert({end_ns + prepared_.lane_latency_ns(output.edge, lane, microbatch) + vote_ns,
                        output.task + microbatch, output.producer, output.vote + microbatch, lane});
  }
}

void EagerEngine::count_in_inbox(RankState& to, std::int64_t bytes, std::int64_t sent_ns,
                                 std::int64_t now_ns) {
  if (sent_ns > now_ns) {
    to.transmissions.insert({sent_ns, bytes});
    return;
  }
  // Earlier transmissions to this rank that it has not looked at yet.
  const auto add = [&to](const InboxBytes& added) {
    to.inbox_bytes += added.bytes;
    to.peak_inbox_bytes = std::max(to.peak_inbox_bytes, to.inbox_bytes);
  };
  to.transmissions.drain(now_ns, add);
  add({now_ns, bytes});
}

void EagerEngine::deliver(int rank, std::int64_t now_ns) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  RankScheduler& scheduler = schedulers_[static_cast<std::size_t>(rank)];
  state.arrivals.drain(now_ns, [&](const Arrival& arrival) { deliver_arrival(rank, arrival); });
  state.notices.drain(now_ns, [&](const NoticeArrival& arrival) {
    scheduler.on_notice(arrival.notice.task, arrival.notice.producer, arrival.notice.eta_ns);
  });
  state.transmissions.drain(now_ns, [&](const InboxBytes& added) {
    state.inbox_bytes += added.bytes;
    state.peak_inbox_bytes = std::max(state.peak_inbox_bytes, state.inbox_bytes);
  });
}

void EagerEngine::deliver_arrival(int rank, const Arrival& arrival) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if (arrival.message >= 0 &&
      !arrival_votes_[static_cast<std::size_t>(rank)].on_lane(arrival.message, arrival.lane)) {
    return;
  }
  --(arrival.producer == RankScheduler::kRootInput ? state.root_inputs : state.in_flight);
  schedulers_[static_cast<std::size_t>(rank)].on_input(arrival.task, arrival.producer);
}

void EagerEngine::decide(int rank, std::int64_t now_ns) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  RankScheduler& scheduler = schedulers_[static_cast<std::size_t>(rank)];
  state.wake_ns = NextEventTree::kNever;
  while (state.held < depth_) {
    const Decision decision = scheduler.decide(now_ns);
    state.reason = decision.reason;
    if (decision.action == Decision::Action::kStart) {
      begin(rank, decision.task, now_ns);
      continue;
    }
    if (decision.action == Decision::Action::kWait) state.wake_ns = decision.until_ns;
    break;
  }
  if (detail_.causes && state.held == 0) note_idle(rank, now_ns);
}

void EagerEngine::begin(int rank, TaskId task, std::int64_t now_ns) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  std::int64_t start_ns = now_ns + prepared_.start_delay_ns();
  if (leader_) start_ns = std::max(start_ns, lanes_ready_ns_[static_cast<std::size_t>(task)]);
  start_ns = std::max(start_ns, state.last_end_ns);
  const std::int64_t length_ns = prepared_.duration_ns()[static_cast<std::size_t>(task)];
  const std::int64_t end_ns = start_ns + length_ns;
  if (detail_.causes) idle_.decided(rank, now_ns, state.last_end_ns, start_ns, end_ns);
  if (detail_.tasks) {
    RankResult& record = records_[static_cast<std::size_t>(rank)];
    record.order.push_back(program_.task(task));
    record.decided_ns.push_back(now_ns);
    record.start_ns.push_back(start_ns);
    record.end_ns.push_back(end_ns);
  }
  state.last_end_ns = end_ns;
  state.busy_ns += length_ns;
  makespan_ns_ = std::max(makespan_ns_, end_ns);
  int tail = state.head + state.held;
  if (tail >= depth_) tail -= depth_;
  held(rank, tail) = {task, end_ns};
  ++state.held;
  if (has_bytes_) take_from_inbox(state, task);
  send_notices(rank, now_ns);
}

void EagerEngine::take_from_inbox(RankState& state, TaskId task) {
  if (program_.slot_of(task) != Slot::kForward) return;
  const int stage = program_.stage_of(task);
  const int microbatch = program_.microbatch_of(task);
  for (const int from : program_.predecessors(stage)) {
    if (program_.rank_of(from) == program_.rank_of(stage)) continue;
    const EdgeId edge = program_.find_edge(Kind::kForward, from, stage);
    state.inbox_bytes -=
        prepared_.message_bytes()[static_cast<std::size_t>(edge * microbatches_ + microbatch)];
  }
}

void EagerEngine::send_notices(int rank, std::int64_t now_ns) {
  const std::int64_t arrival_ns = now_ns + prepared_.input().network.notice_ns;
  for (const Notice& notice : schedulers_[static_cast<std::size_t>(rank)].notices()) {
    RankState& to = ranks_[static_cast<std::size_t>(notice.to_rank)];
    to.notices.insert({arrival_ns, notice});
    // A rank of this round sets its own next event when all have decided.
    if (to.round != round_number_ && to.held < depth_ && arrival_ns < events_.at(notice.to_rank)) {
      events_.set(notice.to_rank, arrival_ns);
    }
  }
}

std::int64_t EagerEngine::next_event_ns(int rank) const {
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const std::int64_t finish_ns =
      state.held == 0 ? NextEventTree::kNever
                      : held_[static_cast<std::size_t>(rank * depth_ + state.head)].end_ns;
  if (state.held == depth_) return finish_ns;
  return std::min({finish_ns, state.arrivals.next_ns(), state.notices.next_ns(), state.wake_ns});
}

void EagerEngine::note_idle(int rank, std::int64_t now_ns) {
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  idle_.idle(rank,
             idle_cause_of(schedulers_[static_cast<std::size_t>(rank)], false, state.reason,
                           state.in_flight, state.root_inputs),
             now_ns);
}

bool EagerEngine::completed() const {
  return std::all_of(schedulers_.begin(), schedulers_.end(),
                     [](const RankScheduler& scheduler) { return scheduler.finished(); });
}

SimulationResult EagerEngine::result() const {
  SimulationResult result;
  result.completed = completed();
  result.makespan_ns = makespan_ns_;
  result.arrangement = prepared_.arrangement();
  result.messages = messages_;
  result.ranks = records_;
  result.ranks.resize(ranks_.size());
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankScheduler& scheduler = schedulers_[rank];
    RankResult& to = result.ranks[rank];
    to.busy_ns = ranks_[rank].busy_ns;
    to.peak_bytes = scheduler.admission().peak_bytes();
    to.peak_inbox_bytes = ranks_[rank].peak_inbox_bytes;
    if (detail_.causes) to.idle_ns = idle_.of(static_cast<int>(rank));
    if (!result.completed && scheduler.decided() < scheduler.size()) {
      result.blocked.push_back(program_.task(scheduler.task_at(scheduler.first_undecided())));
    }
  }
  return result;
}

}  // namespace rrfp
