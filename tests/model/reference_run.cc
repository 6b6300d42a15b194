#include "tests/model/reference_run.h"

#include <algorithm>

namespace rrfp::model {

ReferenceRun::ReferenceRun(const ReferenceCase& ready, const SimulateOptions& options,
                           Mutant mutant)
    : case_(ready),
      options_(options),
      mutant_(mutant),
      tasks_(static_cast<std::size_t>(ready.program.task_ids())),
      held_by_activation_(ready.activation_bytes.size(), 0),
      ranks_(static_cast<std::size_t>(ready.program.ranks())) {}

SimulationResult ReferenceRun::run() {
  push(0, {});
  for (int m = 0; m < program().microbatches(); ++m) push(case_.input_ready_ns(m), {});
  if (case_.rendezvous()) {
    for (int rank = 0; rank < program().ranks(); ++rank) begin_phase(rank);
  }
  while (!events_.empty()) {
    now_ns_ = events_.begin()->first.first;
    // Each turn is a round: everything that has happened by now, then
    // every rank's decision. What the decisions cause at once is the next turn's.
    while (!events_.empty() && events_.begin()->first.first == now_ns_) {
      apply_events_of_this_instant();
      for (int rank = 0; rank < program().ranks(); ++rank) decide(rank);
    }
    if (options_.idle_causes) sample_causes();
  }
  return result();
}

void ReferenceRun::push(std::int64_t at_ns, Event event) {
  events_.emplace(std::make_pair(at_ns, sequence_++), event);
}

void ReferenceRun::apply_events_of_this_instant() {
  while (!events_.empty() && events_.begin()->first.first == now_ns_) {
    const Event event = events_.begin()->second;
    events_.erase(events_.begin());
    apply(event);
    if (is(Mutant::kDecidesBeforeEvents)) break;
  }
}

void ReferenceRun::apply(const Event& event) {
  switch (event.what) {
    case Event::What::kWake:
      break;
    case Event::What::kFinish:
      finish(event.task);
      break;
    case Event::What::kTransmission:
      add_to_inbox(event.message);
      break;
    case Event::What::kArrival:
      arrive(event.message);
      break;
    case Event::What::kNotice:
      // A notice that comes after its input is dropped.
      if (!messages_[event.message].arrived) messages_[event.message].eta_ns = event.eta_ns;
      break;
  }
}

void ReferenceRun::finish(TaskId id) {
  const int rank = rank_of(id);
  state(id).finished = true;
  std::erase(rank_state(rank).held, id);
  release_memory(id);
  // Ascending destination stage.
  for (const EdgeId edge : program().edges_from(program().stage_of(id), program().slot_of(id))) {
    send({edge, program().microbatch_of(id)});
  }
  if (case_.rendezvous()) begin_phase(rank);
}

void ReferenceRun::send(MessageKey key) {
  MessageState& message = messages_[key];
  message.finish_ns = now_ns_;
  if (program().edge(key.first).local()) {
    message.arrived = true;
    return;
  }
  message.in_flight = true;
  if (!case_.rendezvous()) enter_link(key);
}

// Eager: links are first in, first out, one per ordered pair of ranks.
void ReferenceRun::enter_link(MessageKey key) {
  const auto [edge, microbatch] = key;
  MessageState& message = messages_[key];
  std::pair<int, int> link = {program().edge(edge).from_rank, program().edge(edge).to_rank};
  if (is(Mutant::kLinkPerEdge)) link = {-1 - edge, 0};
  std::int64_t busy_ns = case_.busy_ns(edge, microbatch);
  if (is(Mutant::kLinkRoundsDown) && busy_ns > 0) busy_ns -= 1;
  message.sent_ns = std::max(now_ns_, link_free_ns_[link]);
  link_free_ns_[link] = message.sent_ns + busy_ns;
  const std::int64_t sent_whole_ns = message.sent_ns + busy_ns;
  message.arrival_ns = sent_whole_ns + case_.group_latency_ns(edge, microbatch);
  message.last_lane_ns = sent_whole_ns + case_.slowest_latency_ns(edge, microbatch);
  if (message.sent_ns > now_ns_ && !is(Mutant::kInboxFromFinish)) {
    push(message.sent_ns, {Event::What::kTransmission, kNoTask, key, 0});
  } else {
    add_to_inbox(key);
  }
  push(message.arrival_ns, {Event::What::kArrival, kNoTask, key, 0});
}

void ReferenceRun::add_to_inbox(MessageKey key) {
  const Edge& edge = program().edge(key.first);
  if (edge.kind != Kind::kForward) return;
  RankState& receiver = rank_state(edge.to_rank);
  receiver.inbox_bytes += case_.message_bytes(key.first, key.second);
  receiver.peak_inbox_bytes = std::max(receiver.peak_inbox_bytes, receiver.inbox_bytes);
}

void ReferenceRun::arrive(MessageKey key) {
  messages_[key].arrived = true;
  messages_[key].in_flight = false;
  if (!case_.rendezvous()) return;
  const Edge& edge = program().edge(key.first);
  for (const int rank : {edge.from_rank, edge.to_rank}) {
    rank_state(rank).phase.erase(key);
    end_phase_when_done(rank);
  }
}

// Rendezvous: the sends of the task before and the receives of the one after
// are posted together.
void ReferenceRun::begin_phase(int rank) {
  RankState& self = rank_state(rank);
  const std::size_t done = self.started.size();
  std::set<MessageKey> keys;
  if (done > 0) {
    const TaskId before = self.started.back();
    for (const EdgeId edge :
         program().edges_from(program().stage_of(before), program().slot_of(before))) {
      if (!program().edge(edge).local()) keys.insert({edge, program().microbatch_of(before)});
    }
  }
  if (done < hint(rank).size()) {
    const TaskId after = hint(rank)[done];
    for (const Dependency& dependency : case_.dependencies[static_cast<std::size_t>(after)]) {
      if (dependency.what != Dependency::What::kMessage) continue;
      if (program().edge(dependency.edge).local()) continue;
      keys.insert({dependency.edge, program().microbatch_of(after)});
    }
  }
  self.phase = keys;
  for (const MessageKey& key : keys) post(key);
  end_phase_when_done(rank);
}

// A transfer starts when both ends have posted it.
void ReferenceRun::post(MessageKey key) {
  MessageState& message = messages_[key];
  message.posted_ends += 1;
  if (message.posted_ends < 2) return;
  message.sent_ns = now_ns_;
  const std::int64_t latency_ns = is(Mutant::kRendezvousVotes)
                                      ? case_.group_latency_ns(key.first, key.second)
                                      : case_.slowest_latency_ns(key.first, key.second);
  message.arrival_ns = message.sent_ns + case_.busy_ns(key.first, key.second) + latency_ns;
  message.last_lane_ns = message.arrival_ns;
  push(message.arrival_ns, {Event::What::kArrival, kNoTask, key, 0});
}

void ReferenceRun::end_phase_when_done(int rank) {
  if (rank_state(rank).phase.empty()) last_phase_end_ns_ = std::max(last_phase_end_ns_, now_ns_);
}

const ReferenceRun::MessageState* ReferenceRun::find_message(MessageKey key) const {
  const auto found = messages_.find(key);
  return found == messages_.end() ? nullptr : &found->second;
}

SimulationResult ReferenceRun::result() const {
  SimulationResult result;
  result.makespan_ns = last_phase_end_ns_;
  if (!std::is_sorted(case_.arrangement.begin(), case_.arrangement.end())) {
    result.arrangement = case_.arrangement;
  }
  for (int rank = 0; rank < program().ranks(); ++rank) {
    const RankState& self = rank_state(rank);
    RankResult& out = result.ranks.emplace_back();
    for (const TaskId id : self.started) {
      out.order.push_back(program().task(id));
      out.decided_ns.push_back(state(id).decided_ns);
      out.start_ns.push_back(state(id).start_ns);
      out.end_ns.push_back(state(id).end_ns);
      out.busy_ns += state(id).end_ns - state(id).start_ns;
      result.makespan_ns = std::max(result.makespan_ns, state(id).end_ns);
    }
    out.peak_bytes = self.peak_bytes;
    out.peak_inbox_bytes = self.peak_inbox_bytes;
    if (self.started.size() == hint(rank).size()) continue;
    result.completed = false;
    const int open = first_open_position(rank);
    result.blocked.push_back(program().task(hint(rank)[static_cast<std::size_t>(open)]));
  }
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const std::int64_t end_ns = std::min(
        result.makespan_ns, i + 1 < samples_.size() ? samples_[i + 1].at_ns : result.makespan_ns);
    const std::int64_t length_ns = std::max<std::int64_t>(0, end_ns - samples_[i].at_ns);
    for (std::size_t rank = 0; rank < result.ranks.size(); ++rank) {
      const std::optional<IdleCause> cause = samples_[i].causes[rank];
      if (cause) result.ranks[rank].idle_ns[static_cast<std::size_t>(*cause)] += length_ns;
    }
  }
  if (options_.messages) {
    for (const auto& [key, message] : messages_) {
      if (!message.arrived || program().edge(key.first).local()) continue;
      result.messages.push_back(
          {key.first, key.second, message.finish_ns, message.sent_ns, message.arrival_ns});
    }
    std::stable_sort(
        result.messages.begin(), result.messages.end(),
        [](const MessageRecord& a, const MessageRecord& b) { return a.finish_ns < b.finish_ns; });
  }
  return result;
}

}  // namespace rrfp::model
