#include "executor/rank_loop.h"

#include <algorithm>
#include <bit>

#include "executor/letter_check.h"
#include "executor/memory_wait.h"

namespace rrfp {

namespace {

// Along which `task` gets the output of stage `producer`.
EdgeId input_edge(const Program& program, TaskId task, int producer) {
  const Kind kind = program.slot_of(task) == Slot::kForward ? Kind::kForward : Kind::kBackward;
  return program.find_edge(kind, producer, program.stage_of(task));
}

}  // namespace

RankLoop::RankLoop(const LoopContext& context)
    : context_(context),
      world_(*context.world),
      program_(world_.program()),
      machines_(*context.machines),
      microbatches_(program_.microbatches()),
      lanes_(context.grid.lanes),
      leader_(context.place.lane == 0),
      votes_(lanes_ > 1 && !world_.leader_decides_alone()),
      depth_(world_.input().queue_depth),
      size_(static_cast<int>(program_.tasks_of_rank(context.place.rank).size())),
      states_(static_cast<std::size_t>(program_.task_ids())),
      messages_(program_.edges().size() * static_cast<std::size_t>(microbatches_)),
      link_free_ns_(static_cast<std::size_t>(program_.ranks())),
      roots_(world_.root_inputs(context.place.rank)),
      sync_(context) {
  record_.endpoint = context.grid.endpoint(context.place);
  record_.iteration = context.iteration;
  record_.tasks.reserve(static_cast<std::size_t>(size_));
  for (const Edge& edge : program_.edges()) {
    if (!edge.crosses() || edge.to_rank != context.place.rank) continue;
    const Slot slot = edge.slot();
    for (int m = 0; m < microbatches_; ++m) ++at(program_.task_id(edge.to, slot, m)).inputs_missing;
  }
}

Letter RankLoop::letter(Tag tag) const {
  Letter letter;
  letter.tag = tag;
  letter.iteration = context_.iteration;
  letter.lane = context_.place.lane;
  return letter;
}

Result<void> RankLoop::on_letter(const Letter& letter, Payload payload, std::int64_t now_ns) {
  dirty_ = true;
  switch (letter.tag) {
    case Tag::kMessage:
      return take_message(letter, std::move(payload), now_ns);
    case Tag::kNotice:
      return take_notice(letter, now_ns);
    case Tag::kVote:
      return take_vote(letter, now_ns);
    case Tag::kStart:
      return take_start(letter, now_ns);
    case Tag::kLaneStart:
      return take_lane_start(letter);
    case Tag::kCredit:
      return take_credit(letter, now_ns);
    case Tag::kGradient:
    case Tag::kReduced:
      return sync_.on_letter(letter, std::move(payload), now_ns);
    default:
      return wrong(letter, "which has no meaning in message-driven execution");
  }
}

Error RankLoop::wrong(const Letter& letter, const std::string& why) const {
  return out_of_turn(letter, context_.grid, program_, why);
}

Result<void> RankLoop::take_notice(const Letter& letter, std::int64_t now_ns) {
  const EdgeId edge = input_edge(program_, letter.task, letter.stage);
  bool& noticed = message(edge, program_.microbatch_of(letter.task)).noticed;
  if (noticed) return wrong(letter, kSentBefore);
  noticed = true;
  note_signal(SignalRecord::Type::kNotice, edge, letter, now_ns);
  machines_.on_notice(letter.task, letter.stage, letter.time_ns);
  return {};
}

Result<void> RankLoop::take_vote(const Letter& letter, std::int64_t now_ns) {
  if (!votes_) return wrong(letter, "where the leader decides alone");
  const int microbatch = program_.microbatch_of(letter.task);
  if (machines_.has_vote(letter.edge, microbatch, letter.lane)) return wrong(letter, kSentBefore);
  if (machines_.on_lane(letter.edge, microbatch, letter.lane)) {
    arrived_for_group(letter.edge, letter.task, now_ns);
  }
  return {};
}

Result<void> RankLoop::take_start(const Letter& letter, std::int64_t now_ns) {
  TaskState& state = at(letter.task);
  if (letter.sequence != machines_.announced()) {
    return wrong(letter, "as number " + std::to_string(letter.sequence) + ", where number " +
                             std::to_string(machines_.announced()) + " comes next");
  }
  if (state.announced) return wrong(letter, kSentBefore);
  if (const TaskId before = own_input_to_come(letter.task); before != kNoTask) {
    return wrong(letter,
                 "and none before it for " + to_string(program_.task(before)) + ", which it needs");
  }
  machines_.on_announced(letter.sequence, letter.task);
  state.announced = true;
  state.decided_ns = now_ns;
  state.not_before_ns = letter.time_ns;
  return {};
}

// On a lane that does not decide: what `task` needs of this rank and is not announced; kNoTask:
// nothing.
TaskId RankLoop::own_input_to_come(TaskId task) const {
  const int stage = program_.stage_of(task);
  const int microbatch = program_.microbatch_of(task);
  const Slot slot = program_.slot_of(task);
  if (slot != Slot::kForward) {
    const Slot before = slot == Slot::kBackward ? Slot::kForward : Slot::kBackward;
    const TaskId own = program_.task_id(stage, before, microbatch);
    if (!at(own).announced) return own;
  }
  for (const EdgeId edge : program_.edges_to(stage, slot)) {
    if (!program_.edge(edge).local()) continue;
    const TaskId producer = program_.task_id(program_.edge(edge).from, slot, microbatch);
    if (!at(producer).announced) return producer;
  }
  return kNoTask;
}

Result<void> RankLoop::take_credit(const Letter& letter, std::int64_t now_ns) {
  bool& uses_credit = message(letter.edge, program_.microbatch_of(letter.task)).uses_credit;
  if (!uses_credit) return wrong(letter, "for a message that uses none");
  uses_credit = false;
  note_signal(SignalRecord::Type::kCredit, letter.edge, letter, now_ns);
  machines_.on_credit(letter.edge);
  return send_granted(letter.edge, now_ns);
}

void RankLoop::note_signal(SignalRecord::Type type, EdgeId edge, const Letter& letter,
                           std::int64_t now_ns) {
  record_.signals.push_back(
      {type, edge, program_.microbatch_of(letter.task), 0, letter.sent_ns, now_ns, letter.time_ns});
}

Result<void> RankLoop::take_message(const Letter& letter, Payload payload, std::int64_t now_ns) {
  const Edge& edge = program_.edge(letter.edge);
  const int microbatch = program_.microbatch_of(letter.task);
  std::int32_t& arrival = message(letter.edge, microbatch).arrival;
  if (arrival >= 0) return wrong(letter, kSentBefore);
  arrival = static_cast<std::int32_t>(record_.arrivals.size());
  record_.arrivals.push_back({letter.edge, microbatch, letter.time_ns, letter.sent_ns,
                              letter.due_ns, now_ns, now_ns, letter.bytes});
  Result<void> taken = context_.device->take_input(letter.task, edge.from, std::move(payload));
  if (!taken.ok()) return taken;
  --at(letter.task).inputs_missing;
  note_ready(letter.task, now_ns);
  if (!votes_) {
    if (leader_) arrived_for_group(letter.edge, letter.task, now_ns);
  } else if (!leader_) {
    Letter vote = this->letter(Tag::kVote);
    vote.to = peer(context_.place.rank, 0);
    vote.task = letter.task;
    vote.edge = letter.edge;
    vote.due_ns = now_ns + world_.vote_ns();
    context_.mail->tell(vote);
  } else if (machines_.on_lane(letter.edge, microbatch, 0)) {
    arrived_for_group(letter.edge, letter.task, now_ns);
  }
  return {};
}

void RankLoop::arrived_for_group(EdgeId edge, TaskId task, std::int64_t now_ns) {
  const std::int32_t arrival = message(edge, program_.microbatch_of(task)).arrival;
  record_.arrivals[static_cast<std::size_t>(arrival)].group_ns = now_ns;
  note_ready(task, now_ns);
  machines_.on_input(task, program_.edge(edge).from);
}

void RankLoop::note_ready(TaskId task, std::int64_t now_ns) {
  at(task).ready_ns = std::max(at(task).ready_ns, now_ns);
}

Result<void> RankLoop::take_lane_start(const Letter& letter) {
  const int lane = context_.grid.place(letter.from).lane;
  if ((at(letter.task).lanes_started >> lane & 1) != 0) return wrong(letter, kSentBefore);
  lane_started(letter.task, lane, letter.time_ns);
  return {};
}

void RankLoop::lane_started(TaskId task, int lane, std::int64_t start_ns) {
  TaskState& state = at(task);
  state.group_start_ns = std::max(state.group_start_ns, start_ns);
  state.lanes_started |= std::uint64_t{1} << lane;
  if (std::popcount(state.lanes_started) == lanes_) {
    context_.device->on_group_start(task, state.group_start_ns);
  }
}

Result<bool> RankLoop::step(std::int64_t now_ns) {
  bool moved = false;
  for (; next_root_ < roots_.size() && roots_[next_root_].time_ns <= now_ns; ++next_root_) {
    note_ready(roots_[next_root_].task, now_ns);
    if (leader_) machines_.on_input(roots_[next_root_].task, RankScheduler::kRootInput);
    moved = dirty_ = true;
  }
  while (const std::optional<DeviceEvent> event = context_.device->poll(now_ns)) {
    Result<void> handled = on_device(*event, now_ns);
    if (!handled.ok()) return handled.error();
    moved = dirty_ = true;
  }
  const Result<bool> synced = sync_.step(now_ns);
  if (!synced.ok()) return synced;
  if (leader_ && (dirty_ || now_ns >= wake_ns_)) decide(now_ns);
  if (dirty_ && lanes_ > 1) launch_announced(now_ns);
  dirty_ = false;
  return moved || *synced;
}

Result<void> RankLoop::on_device(const DeviceEvent& event, std::int64_t now_ns) {
  TaskState& state = at(event.task);
  if (event.type == DeviceEvent::Type::kFinished) {
    return finish_task(event.task, event.time_ns, now_ns);
  }
  just_started_ = event.task;
  state.record = static_cast<std::int32_t>(record_.tasks.size());
  record_.tasks.push_back({event.task, 0, state.ready_ns, state.decided_ns, event.time_ns, -1});
  if (lanes_ == 1) return {};
  Letter started = letter(Tag::kLaneStart);
  started.task = event.task;
  started.time_ns = event.time_ns;
  for (int lane = 0; lane < lanes_; ++lane) {
    if (lane == context_.place.lane) continue;
    started.to = peer(context_.place.rank, lane);
    context_.mail->tell(started);
  }
  lane_started(event.task, context_.place.lane, event.time_ns);
  return {};
}

Result<void> RankLoop::finish_task(TaskId task, std::int64_t end_ns, std::int64_t now_ns) {
  TaskState& state = at(task);
  TaskRecord& record = record_.tasks[static_cast<std::size_t>(state.record)];
  record.end_ns = end_ns;
  state.ended = true;
  ++ended_count_;
  last_end_ns_ = end_ns;
  const int stage = program_.stage_of(task);
  const int microbatch = program_.microbatch_of(task);
  const Slot slot = program_.slot_of(task);
  if (slot == Slot::kForward)
    note_ready(program_.task_id(stage, Slot::kBackward, microbatch), now_ns);
  if (slot == Slot::kBackward)
    note_ready(program_.task_id(stage, Slot::kWeight, microbatch), now_ns);
  if (leader_) {
    machines_.on_finished(task, now_ns);
    adapt(task, end_ns - record.start_ns);
  }
  Result<void> sent = send_outputs(task, end_ns, now_ns);
  if (!sent.ok()) return sent;
  return sync_.on_finished(task, now_ns);
}

// The running mean is over microbatches of mean expected cost: what was
// measured is scaled by the known cost of this one.
void RankLoop::adapt(TaskId task, std::int64_t length_ns) {
  if (!machines_.adapts()) return;
  __extension__ using Wide = __int128;
  const std::int64_t expected_ns = world_.expected_ns()[static_cast<std::size_t>(task)];
  const std::int64_t mean_ns = world_.mean_expected_ns(task);
  if (expected_ns <= 0) return;
  machines_.on_expected(program_.stage_of(task), program_.task(task).kind,
                        static_cast<std::int64_t>(Wide{length_ns} * mean_ns / expected_ns));
}

Result<void> RankLoop::send_outputs(TaskId task, std::int64_t end_ns, std::int64_t now_ns) {
  const int microbatch = program_.microbatch_of(task);
  const Slot slot = program_.slot_of(task);
  for (const EdgeId id : program_.edges_from(program_.stage_of(task), slot)) {
    const Edge& edge = program_.edge(id);
    if (edge.local()) {
      note_ready(program_.task_id(edge.to, slot, microbatch), now_ns);
      continue;
    }
    Result<void> sent;
    if (slot == Slot::kForward) {
      machines_.on_output(id, microbatch);
      sent = send_granted(id, now_ns);
    } else {
      sent = send_message(id, microbatch, end_ns);
    }
    if (!sent.ok()) return sent;
  }
  return {};
}

Result<void> RankLoop::send_granted(EdgeId edge, std::int64_t now_ns) {
  for (int m = machines_.next(edge); m != EdgeCredits::kNothing; m = machines_.next(edge)) {
    message(edge, m).uses_credit = true;
    Result<void> sent = send_message(edge, m, now_ns);
    if (!sent.ok()) return sent;
  }
  return {};
}

// The world's link and latency decide when the receiver may look at it.
Result<void> RankLoop::send_message(EdgeId id, int microbatch, std::int64_t now_ns) {
  const Edge& edge = program_.edge(id);
  const Slot slot = edge.slot();
  const auto index = static_cast<std::size_t>(id * microbatches_ + microbatch);
  const TaskId producer = program_.task_id(edge.from, slot, microbatch);
  Result<Payload> payload = context_.device->output(producer, id);
  if (!payload.ok()) return payload.error();
  std::int64_t& free_ns = link_free_ns_[static_cast<std::size_t>(edge.to_rank)];
  Letter letter = this->letter(Tag::kMessage);
  letter.to = peer(edge.to_rank, context_.place.lane);
  letter.task = program_.task_id(edge.to, slot, microbatch);
  letter.edge = id;
  letter.time_ns = record_.tasks[static_cast<std::size_t>(at(producer).record)].end_ns;
  letter.sent_ns = std::max(now_ns, free_ns);
  free_ns = letter.sent_ns + world_.busy_ns()[index];
  letter.due_ns = free_ns + world_.lane_latency_ns(id, context_.place.lane, microbatch);
  context_.mail->send(letter, std::move(*payload));
  return {};
}

void RankLoop::decide(std::int64_t now_ns) {
  wake_ns_ = kNever;
  while (machines_.scheduler().held() < depth_) {
    const Decision decision = machines_.decide(now_ns);
    if (decision.action == Decision::Action::kStart) {
      begin_task(decision.task, now_ns);
      continue;
    }
    if (decision.action == Decision::Action::kWait) wake_ns_ = decision.until_ns;
    break;
  }
}

void RankLoop::begin_task(TaskId task, std::int64_t now_ns) {
  at(task).decided_ns = now_ns;
  at(task).not_before_ns = now_ns + world_.start_delay_ns();
  Letter notice = letter(Tag::kNotice);
  for (const Notice& of : machines_.scheduler().notices()) {
    notice.to = peer(of.to_rank, 0);
    notice.task = of.task;
    notice.stage = of.producer;
    notice.time_ns = of.eta_ns;
    notice.sent_ns = now_ns;
    notice.due_ns = now_ns + world_.input().network.notice_ns;
    context_.mail->tell(notice);
  }
  if (lanes_ == 1) {
    launch(task, at(task).not_before_ns, now_ns);
    return;
  }
  Letter start = letter(Tag::kStart);
  start.sequence = machines_.announced();
  start.task = task;
  start.time_ns = at(task).not_before_ns;
  for (int lane = 1; lane < lanes_; ++lane) {
    start.to = peer(context_.place.rank, lane);
    context_.mail->tell(start);
  }
  machines_.on_announced(start.sequence, task);
}

void RankLoop::launch_announced(std::int64_t now_ns) {
  for (TaskId task = machines_.front(); task != kNoTask; task = machines_.front()) {
    if (at(task).inputs_missing > 0) return;
    machines_.pop();
    launch(task, at(task).not_before_ns, now_ns);
  }
}

void RankLoop::launch(TaskId task, std::int64_t not_before_ns, std::int64_t now_ns) {
  if (program_.slot_of(task) == Slot::kForward) return_credits(task, now_ns);
  context_.device->launch(task, not_before_ns, now_ns);
  dirty_ = true;
}

void RankLoop::return_credits(TaskId task, std::int64_t now_ns) {
  const int stage = program_.stage_of(task);
  for (const int producer : program_.predecessors(stage)) {
    if (program_.rank_of(producer) == context_.place.rank) continue;
    Letter credit = letter(Tag::kCredit);
    credit.to = peer(program_.rank_of(producer), context_.place.lane);
    credit.edge = program_.find_edge(Kind::kForward, producer, stage);
    credit.task = task;
    credit.sent_ns = now_ns;
    context_.mail->tell(credit);
  }
}

std::int64_t RankLoop::next_ns() const {
  std::int64_t next_ns = std::min({context_.device->next_event_ns(), sync_.next_ns(), wake_ns_});
  if (next_root_ < roots_.size()) next_ns = std::min(next_ns, roots_[next_root_].time_ns);
  return next_ns;
}

bool RankLoop::finished() const {
  return ended_count_ == size_ && sync_.finished() && !machines_.any_output_waits();
}

bool RankLoop::quiet() const { return next_ns() == kNever && !dirty_ && !context_.device->busy(); }

TaskId RankLoop::next_task() const {
  if (!leader_) return machines_.front();
  const RankScheduler& scheduler = machines_.scheduler();
  const int position = scheduler.first_undecided();
  return position < scheduler.size() ? scheduler.task_at(position) : kNoTask;
}

std::string RankLoop::missing_input(TaskId task) const {
  const int stage = program_.stage_of(task);
  const int microbatch = program_.microbatch_of(task);
  const bool forward = program_.slot_of(task) == Slot::kForward;
  if (program_.slot_of(task) != Slot::kWeight) {
    for (const int from : forward ? program_.predecessors(stage) : program_.successors(stage)) {
      const EdgeId edge =
          program_.find_edge(forward ? Kind::kForward : Kind::kBackward, from, stage);
      const int rank = program_.rank_of(from);
      if (rank == context_.place.rank || !program_.edge(edge).carries) continue;
      if (message(edge, microbatch).arrival >= 0) continue;
      return (forward ? "the activation" : "the gradient") + std::string(" on channel rank ") +
             std::to_string(rank) + " -> rank " + std::to_string(context_.place.rank) + " (stage " +
             std::to_string(from) + " -> " + std::to_string(stage) + ")";
    }
  }
  return {};
}

std::string RankLoop::waiting(std::int64_t now_ns) const {
  const auto name = [&](TaskId task) { return to_string(program_.task(task)); };
  if (!record_.tasks.empty() && record_.tasks.back().end_ns < 0) {
    const TaskRecord& running = record_.tasks.back();
    return "runs " + name(running.task) + " since " +
           std::to_string((now_ns - running.start_ns) / 1'000'000) + " ms";
  }
  const TaskId task = next_task();
  if (task == kNoTask) {
    if (ended_count_ < size_) return "waits for the leader of its group to announce a task";
    const std::string gradient = sync_.waiting();
    if (!gradient.empty()) return "waits for " + gradient;
    return machines_.any_output_waits() ? "waits for a credit to send its last outputs"
                                        : "has done its part";
  }
  // What holds it back may be a task of the same stage that waits in its turn.
  TaskId held = task;
  const int stage = program_.stage_of(task);
  const int microbatch = program_.microbatch_of(task);
  for (const Slot slot : {Slot::kBackward, Slot::kForward}) {
    const TaskId before = program_.task_id(stage, slot, microbatch);
    if (slot < program_.slot_of(held) && program_.exists(before) && !at(before).ended) {
      held = before;
    }
  }
  const std::string input = missing_input(held);
  const std::string memory = leader_ ? memory_wait(world_, machines_, context_.place.rank) : "";
  if (input.empty() && !memory.empty()) return memory;
  return "waits to run " + name(held) +
         (input.empty() ? ", which its own tasks hold back" : ": for " + input) +
         (memory.empty() ? "" : "; " + memory);
}

WorkerRecord RankLoop::take_record() {
  record_.end_ns = std::max(last_end_ns_, sync_.end_ns());
  record_.syncs = sync_.take_records();
  if (machines_.decides()) record_.peak_bytes = machines_.scheduler().admission().peak_bytes();
  return std::move(record_);
}

}  // namespace rrfp
