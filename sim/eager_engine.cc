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
      stage_and_slot_(microbatches_),
      depth_(prepared.input().queue_depth),
      has_bandwidth_(prepared.input().network.bytes_per_second > 0),
      has_bytes_(!prepared.input().network.message_bytes.empty()),
      votes_(prepared.input().tensor_parallel.lanes > 1 && !prepared.leader_decides_alone()),
      leader_(prepared.leader_decides_alone()),
      accounted_(has_bandwidth_ || has_bytes_ || votes_ || leader_ || detail.tasks ||
                 detail.causes || detail.messages),
      duration_ns_(prepared.duration_ns().data()),
      group_latency_ns_(prepared.group_latency_ns().data()),
      start_delay_ns_(prepared.start_delay_ns()),
      notice_ns_(prepared.input().network.notice_ns),
      ranks_(static_cast<std::size_t>(program_.ranks())),
      accounts_(ranks_.size()),
      ring_(static_cast<std::size_t>(program_.ranks() * depth_)),
      events_(program_.ranks()),
      next_ns_(ranks_.size()),
      horizons_(find_horizons()),
      sweeps_(horizons_ && horizons_->exist()),
      idle_(program_.ranks()) {
  schedulers_.reserve(ranks_.size());
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    schedulers_.emplace_back(program_, prepared.schedule(), prepared.scheduler_config(rank));
  }
  round_.resize(ranks_.size());
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
      Group group;
      group.first_output = static_cast<std::int32_t>(outputs_.size());
      for (const EdgeId id : program_.edges_from(stage, slot)) {
        const Edge& edge = program_.edge(id);
        if (edge.local()) continue;
        int& messages = messages_to[static_cast<std::size_t>(edge.to_rank)];
        outputs_.push_back({program_.task_id(edge.to, slot, 0), id, edge.to_rank, stage,
                            edge.from_rank * program_.ranks() + edge.to_rank, messages,
                            slot == Slot::kForward});
        messages += microbatches_;
      }
      group.last_output = static_cast<std::int32_t>(outputs_.size());
      groups_.push_back(group);
    }
  }
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
  if (sweeps_) {
    run_sweeps();
  } else {
    for (int rank = 0; rank < program_.ranks(); ++rank) events_.set(rank, 0);
    if (accounted_) {
      run_rounds<Loop::kAccounts>(kNoLimit);
    } else {
      run_rounds<Loop::kRounds>(kNoLimit);
    }
  }
  for (RankAccount& account : accounts_) drain_transmissions(account, NextEventTree::kNever);
}

void EagerEngine::reset(std::int64_t clip_ns) {
  events_.reset();
  makespan_ns_ = 0;
  for (RankScheduler& scheduler : schedulers_) scheduler.reset();
  for (ArrivalVote& vote : arrival_votes_) vote.reset();
  for (RankState& state : ranks_) {
    state.held = state.head = 0;
    state.last_end_ns = state.busy_ns = 0;
    state.inbox_ns = state.wake_ns = NextEventTree::kNever;
    state.arrivals.clear();
    state.notices.clear();
  }
  for (RankAccount& account : accounts_) {
    account.reason = WaitReason::kNotReady;
    account.in_flight = account.root_inputs = 0;
    account.inbox_bytes = account.peak_inbox_bytes = 0;
    account.transmissions.clear();
  }
  std::fill(link_free_ns_.begin(), link_free_ns_.end(), 0);
  std::fill(lanes_ready_ns_.begin(), lanes_ready_ns_.end(), 0);
  for (Group& group : groups_) group.end_ns = 0;
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
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    RankState& state = ranks_[static_cast<std::size_t>(rank)];
    for (const RootInput& input : prepared_.root_inputs(rank)) {
      if (input.time_ns == 0) {
        schedulers_[static_cast<std::size_t>(rank)].on_input(input.task, RankScheduler::kRootInput);
      } else {
        state.arrivals.insert({input.time_ns, input.task, RankScheduler::kRootInput});
        ++accounts_[static_cast<std::size_t>(rank)].root_inputs;
      }
    }
    state.inbox_ns = state.arrivals.next_ns();
  }
}

template <EagerEngine::Loop kLoop>
void EagerEngine::run_rounds(std::int64_t limit) {
  for (; limit > 0 && events_.least() != NextEventTree::kNever; --limit) {
    run_round<kLoop>(events_.least());
  }
}

// Only for the loop that runs ranks ahead: nothing is accounted or announced.
std::optional<Horizons> EagerEngine::find_horizons() const {
  if (accounted_ || prepared_.input().policy.anticipation) return std::nullopt;
  return Horizons(least_latencies(), shortest_tasks());
}

std::vector<LinkBound> EagerEngine::least_latencies() const {
  std::vector<LinkBound> links;
  for (std::size_t id = 0; id < program_.edges().size(); ++id) {
    const Edge& edge = program_.edges()[id];
    if (!edge.crosses()) continue;
    const std::int64_t* const first =
        group_latency_ns_ + id * static_cast<std::size_t>(microbatches_);
    links.push_back(
        {edge.from_rank, edge.to_rank, *std::min_element(first, first + microbatches_)});
  }
  return links;
}

std::vector<std::int64_t> EagerEngine::shortest_tasks() const {
  std::vector<std::int64_t> shortest_ns(ranks_.size(), Horizons::kFarNs);
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    std::int64_t& least_ns = shortest_ns[static_cast<std::size_t>(rank)];
    for (const TaskId task : program_.tasks_of_rank(rank)) {
      least_ns = std::min(least_ns, start_delay_ns_ + duration_ns_[task]);
    }
  }
  return shortest_ns;
}

// Goes through the ranks in turn and takes each to its horizon, as long as a
// good part of them get ahead that way; where few do, such as while a pipeline
// fills, some rounds in order of time are cheaper and always get ahead.
void EagerEngine::run_sweeps() {
  const int ranks = program_.ranks();
  std::fill(next_ns_.begin(), next_ns_.end(), 0);
  for (int rank = 0; rank < ranks; ++rank) horizons_->set_floor(rank, 0);
  for (;;) {
    int events = 0;
    for (int rank = 0; rank < ranks; ++rank) events += run_to_horizon(rank);
    if (events > ranks / kLeastShare) continue;
    for (int rank = 0; rank < ranks; ++rank) {
      events_.set(rank, next_ns_[static_cast<std::size_t>(rank)]);
    }
    run_rounds<Loop::kRounds>(ranks);
    if (events_.least() == NextEventTree::kNever) return;
    for (int rank = 0; rank < ranks; ++rank) {
      next_ns_[static_cast<std::size_t>(rank)] = events_.at(rank);
      horizons_->set_floor(
          rank,
          std::max(events_.least(), next_decision_ns(ranks_[static_cast<std::size_t>(rank)])));
    }
  }
}

// Returns how many events there were. Flattened, as this is the loop that a
// sweep spends its time in.
[[gnu::flatten]] int EagerEngine::run_to_horizon(int rank) {
  const std::int64_t horizon_ns = horizons_->of(rank);
  std::int64_t now_ns = next_ns_[static_cast<std::size_t>(rank)];
  if (now_ns >= horizon_ns) {
    // Later events are later still; only a rank without a task has to say so.
    if (ranks_[static_cast<std::size_t>(rank)].held < depth_) raise_floor(rank, horizon_ns);
    return 0;
  }
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  int events = 0;
  for (; now_ns < horizon_ns; ++events) {
    finish_tasks<Loop::kSweeps>(rank, now_ns);
    deliver<Loop::kSweeps>(rank, now_ns);
    decide<Loop::kSweeps>(rank, now_ns);
    now_ns = next_event_ns(state);
  }
  next_ns_[static_cast<std::size_t>(rank)] = now_ns;
  if (state.held == depth_) {
    horizons_->set_floor(rank, now_ns);
  } else {
    raise_floor(rank, horizon_ns);
  }
  return events;
}

void EagerEngine::raise_floor(int rank, std::int64_t horizon_ns) {
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  horizons_->set_floor_of_idle(rank, std::min(next_ns_[static_cast<std::size_t>(rank)], horizon_ns),
                               state.held == 0 ? NextEventTree::kNever : state.front.end_ns);
}

// Most instants are those of one rank alone; flattened, as this is the loop
// that a sweep spends its time in.
template <EagerEngine::Loop kLoop>
[[gnu::flatten]] void EagerEngine::run_round(std::int64_t now_ns) {
  ++round_number_;
  round_size_ = 0;
  const int only = events_.only_least();
  if (only < 0) {
    events_.each_least([this](int rank) { join_round(rank); });
    run_joined<kLoop>(now_ns);
    return;
  }
  join_round(only);
  finish_tasks<kLoop>(only, now_ns);
  if (round_size_ > 1) {  // an input of another rank arrives at this very instant
    run_joined<kLoop>(now_ns);
    return;
  }
  deliver<kLoop>(only, now_ns);
  decide<kLoop>(only, now_ns);
  events_.set(only, next_event_ns(ranks_[static_cast<std::size_t>(only)]));
}

template <EagerEngine::Loop kLoop>
[[gnu::noinline]] void EagerEngine::run_joined(std::int64_t now_ns) {
  // Finishing may add ranks whose input arrives at this very instant.
  for (std::size_t i = 0; i < round_size_; ++i) finish_tasks<kLoop>(round_[i], now_ns);
  for (std::size_t i = 0; i < round_size_; ++i) deliver<kLoop>(round_[i], now_ns);
  for (std::size_t i = 0; i < round_size_; ++i) decide<kLoop>(round_[i], now_ns);
  for (std::size_t i = 0; i < round_size_; ++i) {
    events_.set(round_[i], next_event_ns(ranks_[static_cast<std::size_t>(round_[i])]));
  }
}

template <EagerEngine::Loop kLoop>
void EagerEngine::finish_tasks(int rank, std::int64_t now_ns) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  RankScheduler& scheduler = schedulers_[static_cast<std::size_t>(rank)];
  while (state.held > 0 && state.front.end_ns == now_ns) {
    const TaskId task = state.front.task;
    if (--state.held > 0) {
      state.front = ring(rank, state.head);
      state.head = (state.head + 1) % depth_;
    }
    scheduler.on_finished(task, now_ns);
    send_outputs<kLoop>(task, now_ns);
  }
}

template <EagerEngine::Loop kLoop>
void EagerEngine::send_outputs(TaskId task, std::int64_t now_ns) {
  const int number = stage_and_slot_(task);
  const int microbatch = task - number * microbatches_;
  Group& group = groups_[static_cast<std::size_t>(number)];
  group.end_ns = now_ns;
  for (std::int32_t i = group.first_output; i < group.last_output; ++i) {
    send<kLoop>(i, microbatch, now_ns);
  }
}

template <EagerEngine::Loop kLoop>
void EagerEngine::send(std::int32_t index, int microbatch, std::int64_t now_ns) {
  const Output& output = outputs_[static_cast<std::size_t>(index)];
  RankState& to = ranks_[static_cast<std::size_t>(output.to_rank)];
  std::int64_t first_ns = 0;  // when the rank has to look at it at the earliest
  if constexpr (kLoop == Loop::kAccounts) {
    first_ns = send_accounted(index, microbatch, now_ns);
  } else {
    const std::int64_t* const latency_ns =
        &group_latency_ns_[output.edge * microbatches_ + microbatch];
    prefetch_ahead(latency_ns);
    first_ns = now_ns + *latency_ns;
    if (next_decision_ns(to) >= first_ns) {
      schedulers_[static_cast<std::size_t>(output.to_rank)].on_input(output.task + microbatch,
                                                                     output.producer);
      return;
    }
    to.arrivals.insert({first_ns, output.task + microbatch, index});
  }
  to.inbox_ns = std::min(to.inbox_ns, first_ns);
  if constexpr (kLoop == Loop::kSweeps) {
    std::int64_t& next_ns = next_ns_[static_cast<std::size_t>(output.to_rank)];
    if (to.held < depth_) next_ns = std::min(next_ns, first_ns);
    return;
  }
  if (to.held == depth_ || to.round == round_number_) return;
  if (first_ns <= now_ns) {
    join_round(output.to_rank);
  } else if (first_ns < events_.at(output.to_rank)) {
    events_.set(output.to_rank, first_ns);
  }
}

std::int64_t EagerEngine::send_accounted(std::int32_t index, int microbatch, std::int64_t now_ns) {
  const Output& output = outputs_[static_cast<std::size_t>(index)];
  const auto message = static_cast<std::size_t>(output.edge * microbatches_ + microbatch);
  const TaskId task = output.task + microbatch;
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
    count_in_inbox(output.to_rank, prepared_.message_bytes()[message], sent_ns, now_ns);
  }
  if (detail_.messages) {
    messages_.push_back({output.edge, microbatch, now_ns, sent_ns, arrival_ns});
  }
  if (leader_) {
    std::int64_t& ready_ns = lanes_ready_ns_[static_cast<std::size_t>(task)];
    ready_ns = std::max(ready_ns, end_ns + prepared_.slowest_latency_ns()[message]);
  }
  ++accounts_[static_cast<std::size_t>(output.to_rank)].in_flight;
  if (votes_) {
    for (int lane = 0; lane < prepared_.input().tensor_parallel.lanes; ++lane) {
      const std::int64_t told_ns = end_ns +
                                   prepared_.lane_latency_ns(output.edge, lane, microbatch) +
                                   (lane == 0 ? 0 : prepared_.vote_ns());
      to.arrivals.insert({told_ns, task, index * ArrivalVote::kMostLanes + lane});
    }
  } else {
    to.arrivals.insert({arrival_ns, task, index});
  }
  if (detail_.causes && to.held == 0 && to.round != round_number_) {
    note_idle(output.to_rank, now_ns);
  }
  return to.arrivals.next_ns();
}

void EagerEngine::count_in_inbox(int rank, std::int64_t bytes, std::int64_t sent_ns,
                                 std::int64_t now_ns) {
  RankAccount& account = accounts_[static_cast<std::size_t>(rank)];
  account.transmissions.insert({sent_ns, bytes});
  drain_transmissions(account, now_ns);
}

void EagerEngine::drain_transmissions(RankAccount& account, std::int64_t now_ns) {
  account.transmissions.drain(now_ns, [&account](const InboxBytes& added) {
    account.inbox_bytes += added.bytes;
    account.peak_inbox_bytes = std::max(account.peak_inbox_bytes, account.inbox_bytes);
  });
}

template <EagerEngine::Loop kLoop>
void EagerEngine::deliver(int rank, std::int64_t now_ns) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  if constexpr (kLoop == Loop::kAccounts) {
    drain_transmissions(accounts_[static_cast<std::size_t>(rank)], now_ns);
  }
  if (state.inbox_ns > now_ns) return;
  RankScheduler& scheduler = schedulers_[static_cast<std::size_t>(rank)];
  state.arrivals.drain(now_ns, [&](const Arrival& arrival) {
    if constexpr (kLoop == Loop::kAccounts) {
      deliver_accounted(rank, arrival);
    } else {
      scheduler.on_input(arrival.task, producer_of(arrival.source));
    }
  });
  state.notices.drain(now_ns, [&](const NoticeArrival& arrival) {
    scheduler.on_notice(arrival.notice.task, arrival.notice.producer, arrival.notice.eta_ns);
  });
  state.inbox_ns = std::min(state.arrivals.next_ns(), state.notices.next_ns());
}

void EagerEngine::deliver_accounted(int rank, const Arrival& arrival) {
  RankAccount& account = accounts_[static_cast<std::size_t>(rank)];
  std::int32_t source = arrival.source;
  if (source == RankScheduler::kRootInput) {
    --account.root_inputs;
  } else if (votes_) {
    const int lane = source % ArrivalVote::kMostLanes;
    source /= ArrivalVote::kMostLanes;
    const Output& output = outputs_[static_cast<std::size_t>(source)];
    const int message = output.vote + arrival.task - output.task;
    if (!arrival_votes_[static_cast<std::size_t>(rank)].on_lane(message, lane)) return;
  }
  if (source != RankScheduler::kRootInput) --account.in_flight;
  schedulers_[static_cast<std::size_t>(rank)].on_input(arrival.task, producer_of(source));
}

template <EagerEngine::Loop kLoop>
void EagerEngine::decide(int rank, std::int64_t now_ns) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  RankScheduler& scheduler = schedulers_[static_cast<std::size_t>(rank)];
  while (state.held < depth_) {
    state.wake_ns = NextEventTree::kNever;
    const Decision decision = scheduler.decide(now_ns);
    if constexpr (kLoop == Loop::kAccounts) {
      accounts_[static_cast<std::size_t>(rank)].reason = decision.reason;
    }
    if (decision.action == Decision::Action::kStart) {
      begin<kLoop>(rank, decision.task, now_ns);
      continue;
    }
    if (decision.action == Decision::Action::kWait) state.wake_ns = decision.until_ns;
    break;
  }
  if constexpr (kLoop == Loop::kAccounts) {
    if (detail_.causes && state.held == 0) note_idle(rank, now_ns);
  }
}

template <EagerEngine::Loop kLoop>
void EagerEngine::begin(int rank, TaskId task, std::int64_t now_ns) {
  RankState& state = ranks_[static_cast<std::size_t>(rank)];
  std::int64_t start_ns = std::max(now_ns + start_delay_ns_, state.last_end_ns);
  if constexpr (kLoop == Loop::kAccounts) {
    if (leader_) start_ns = std::max(start_ns, lanes_ready_ns_[static_cast<std::size_t>(task)]);
    account_start(rank, task, now_ns, start_ns);
  }
  const std::int64_t length_ns = duration_ns_[task];
  prefetch_ahead(&duration_ns_[task]);
  state.last_end_ns = start_ns + length_ns;
  state.busy_ns += length_ns;
  makespan_ns_ = std::max(makespan_ns_, state.last_end_ns);
  HeldTask& place = state.held == 0 ? state.front : ring(rank, state.head + state.held - 1);
  place = {task, state.last_end_ns};
  ++state.held;
  const RankScheduler& scheduler = schedulers_[static_cast<std::size_t>(rank)];
  if (!scheduler.notices().empty()) send_notices(scheduler, now_ns);
}

void EagerEngine::account_start(int rank, TaskId task, std::int64_t now_ns, std::int64_t start_ns) {
  const RankState& state = ranks_[static_cast<std::size_t>(rank)];
  const std::int64_t end_ns = start_ns + prepared_.duration_ns()[static_cast<std::size_t>(task)];
  if (detail_.causes) idle_.decided(rank, now_ns, state.last_end_ns, start_ns, end_ns);
  if (detail_.tasks) {
    RankResult& record = records_[static_cast<std::size_t>(rank)];
    record.order.push_back(program_.task(task));
    record.decided_ns.push_back(now_ns);
    record.start_ns.push_back(start_ns);
    record.end_ns.push_back(end_ns);
  }
  if (has_bytes_) take_from_inbox(accounts_[static_cast<std::size_t>(rank)], task);
}

void EagerEngine::take_from_inbox(RankAccount& account, TaskId task) {
  if (program_.slot_of(task) != Slot::kForward) return;
  const int stage = program_.stage_of(task);
  const int microbatch = program_.microbatch_of(task);
  for (const EdgeId edge : program_.edges_to(stage, Slot::kForward)) {
    if (program_.edge(edge).local()) continue;
    account.inbox_bytes -=
        prepared_.message_bytes()[static_cast<std::size_t>(edge * microbatches_ + microbatch)];
  }
}

[[gnu::noinline]] void EagerEngine::send_notices(const RankScheduler& scheduler,
                                                 std::int64_t now_ns) {
  const std::int64_t arrival_ns = now_ns + notice_ns_;
  for (const Notice& notice : scheduler.notices()) {
    RankState& to = ranks_[static_cast<std::size_t>(notice.to_rank)];
    if (next_decision_ns(to) >= arrival_ns) {
      schedulers_[static_cast<std::size_t>(notice.to_rank)].on_notice(notice.task, notice.producer,
                                                                      notice.eta_ns);
      continue;
    }
    to.notices.insert({arrival_ns, notice});
    to.inbox_ns = std::min(to.inbox_ns, arrival_ns);
    // A rank of this round sets its own next event when all have decided.
    if (to.round != round_number_ && to.held < depth_ && arrival_ns < events_.at(notice.to_rank)) {
      events_.set(notice.to_rank, arrival_ns);
    }
  }
}

std::int64_t EagerEngine::next_event_ns(const RankState& state) const {
  const std::int64_t finish_ns = state.held == 0 ? NextEventTree::kNever : state.front.end_ns;
  if (state.held == depth_) return finish_ns;
  return std::min({finish_ns, state.inbox_ns, state.wake_ns});
}

void EagerEngine::note_idle(int rank, std::int64_t now_ns) {
  const RankAccount& account = accounts_[static_cast<std::size_t>(rank)];
  idle_.idle(rank,
             idle_cause_of(schedulers_[static_cast<std::size_t>(rank)], false, account.reason,
                           account.in_flight, account.root_inputs),
             now_ns);
}

SimulationResult EagerEngine::result() const {
  SimulationResult result;
  result.completed = completed();
  result.makespan_ns = makespan_ns_;
  result.arrangement = prepared_.arrangement();
  if (!result.completed) result.blocked = undecided_tasks(program_, schedulers_);
  result.messages = messages_;
  result.ranks = records_;
  result.ranks.resize(ranks_.size());
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankScheduler& scheduler = schedulers_[rank];
    RankResult& to = result.ranks[rank];
    to.busy_ns = ranks_[rank].busy_ns;
    to.peak_bytes = scheduler.admission().peak_bytes();
    to.peak_inbox_bytes = accounts_[rank].peak_inbox_bytes;
    if (detail_.causes) to.idle_ns = idle_.of(static_cast<int>(rank));
  }
  return result;
}

}  // namespace rrfp
