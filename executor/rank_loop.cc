#include "executor/rank_loop.h"

#include <algorithm>

#include "executor/letter_check.h"
#include "executor/loop_letter.h"
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
      depth_(world_.input().queue_depth),
      size_(static_cast<int>(program_.tasks_of_rank(context.place.rank).size())),
      states_(static_cast<std::size_t>(program_.task_ids())),
      messages_(program_.edges().size() * static_cast<std::size_t>(microbatches_)),
      roots_(world_.root_inputs(context.place.rank)),
      group_(context),
      outgoing_(context),
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

Result<void> RankLoop::on_letter(const Letter& letter, Payload payload, std::int64_t now_ns) {
  dirty_ = true;
  switch (letter.tag) {
    case Tag::kMessage:
      return take_message(letter, std::move(payload), now_ns);
    case Tag::kNotice:
      return take_notice(letter, now_ns);
    case Tag::kVote: {
      const Result<bool> arrived = group_.take_vote(letter);
      if (!arrived.ok()) return arrived.error();
      if (*arrived) arrived_for_group(letter.edge, letter.task, now_ns);
      return {};
    }
    case Tag::kStart: {
      Result<void> taken = group_.take_start(letter);
      if (!taken.ok()) return taken;
      at(letter.task).decided_ns = now_ns;
      at(letter.task).not_before_ns = letter.time_ns;
      return {};
    }
    case Tag::kLaneStart:
      return group_.take_lane_start(letter);
    case Tag::kCredit:
      note_signal(SignalRecord::Type::kCredit, letter.edge, letter, now_ns);
      return outgoing_.take_credit(letter, now_ns);
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
  if (group_.on_arrival(letter.edge, letter.task, now_ns)) {
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

Result<bool> RankLoop::step(std::int64_t now_ns) {
  bool moved = false;
  for (; next_root_ < roots_.size() && roots_[next_root_].time_ns <= now_ns; ++next_root_) {
    note_ready(roots_[next_root_].task, now_ns);
    if (group_.leads()) machines_.on_input(roots_[next_root_].task, RankScheduler::kRootInput);
    moved = dirty_ = true;
  }
  while (const std::optional<DeviceEvent> event = context_.device->poll(now_ns)) {
    Result<void> handled = on_device(*event, now_ns);
    if (!handled.ok()) return handled.error();
    moved = dirty_ = true;
  }
  const Result<bool> synced = sync_.step(now_ns);
  if (!synced.ok()) return synced;
  if (group_.leads() && (dirty_ || now_ns >= wake_ns_)) decide(now_ns);
  if (dirty_ && !group_.is_one_lane()) launch_announced(now_ns);
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
  group_.on_start(event.task, event.time_ns);
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
  if (slot == Slot::kForward) {
    note_ready(program_.task_id(stage, Slot::kBackward, microbatch), now_ns);
  }
  if (slot == Slot::kBackward) {
    note_ready(program_.task_id(stage, Slot::kWeight, microbatch), now_ns);
  }
  if (group_.leads()) {
    machines_.on_finished(task, now_ns);
    adapt(task, end_ns - record.start_ns);
  }
  note_local_outputs(task, now_ns);
  Result<void> sent = outgoing_.on_finished(task, end_ns, now_ns);
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

void RankLoop::note_local_outputs(TaskId task, std::int64_t now_ns) {
  const Slot slot = program_.slot_of(task);
  for (const EdgeId id : program_.edges_from(program_.stage_of(task), slot)) {
    const Edge& edge = program_.edge(id);
    if (!edge.local()) continue;
    note_ready(program_.task_id(edge.to, slot, program_.microbatch_of(task)), now_ns);
  }
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
  Letter notice = letter_of(context_, Tag::kNotice);
  for (const Notice& of : machines_.scheduler().notices()) {
    notice.to = peer_of(context_, of.to_rank, 0);
    notice.task = of.task;
    notice.stage = of.producer;
    notice.time_ns = of.eta_ns;
    notice.sent_ns = now_ns;
    notice.due_ns = now_ns + world_.input().network.notice_ns;
    context_.mail->tell(notice);
  }
  if (group_.is_one_lane()) {
    launch(task, at(task).not_before_ns, now_ns);
  } else {
    group_.announce(task, at(task).not_before_ns);
  }
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
    Letter credit = letter_of(context_, Tag::kCredit);
    credit.to = peer_of(context_, program_.rank_of(producer), context_.place.lane);
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
  if (!group_.leads()) return machines_.front();
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
  const std::string memory =
      group_.leads() ? memory_wait(world_, machines_, context_.place.rank) : "";
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
