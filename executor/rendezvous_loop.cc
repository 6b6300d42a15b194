#include "executor/rendezvous_loop.h"

#include <algorithm>

#include "executor/letter_check.h"
#include "executor/memory_wait.h"
#include "executor/rank_loop.h"

namespace rrfp {

std::unique_ptr<IterationLoop> make_loop(const LoopContext& context) {
  if (context.world->input().network.mode == NetworkMode::kRendezvous) {
    return std::make_unique<RendezvousLoop>(context);
  }
  return std::make_unique<RankLoop>(context);
}

RendezvousLoop::RendezvousLoop(const LoopContext& context)
    : context_(context),
      world_(*context.world),
      program_(world_.program()),
      machines_(*context.machines),
      microbatches_(program_.microbatches()),
      peer_posted_ns_(program_.edges().size() * static_cast<std::size_t>(microbatches_), -1),
      roots_(world_.root_inputs(context.place.rank)),
      sync_(context) {
  record_.endpoint = context.grid.endpoint(context.place);
  record_.iteration = context.iteration;
}

TaskId RendezvousLoop::task_at(int position) const {
  const RankScheduler& scheduler = machines_.scheduler();
  return position >= 0 && position < scheduler.size() ? scheduler.task_at(position) : kNoTask;
}

std::span<const EdgeId> RendezvousLoop::inputs_of(TaskId task) const {
  return program_.edges_to(program_.stage_of(task), program_.slot_of(task));
}

Result<void> RendezvousLoop::post_phase(std::int64_t now_ns) {
  state_ = State::kPhase;
  posted_ns_ = now_ns;
  phase_.clear();
  if (const TaskId done = task_at(position_); done != kNoTask) {
    for (const EdgeId id : program_.edges_from(program_.stage_of(done), program_.slot_of(done))) {
      if (program_.edge(id).local()) continue;
      phase_.push_back({id, program_.microbatch_of(done), true});
    }
  }
  if (const TaskId next = task_at(position_ + 1); next != kNoTask) {
    for (const EdgeId id : inputs_of(next)) {
      if (program_.edge(id).local()) continue;
      phase_.push_back({id, program_.microbatch_of(next), false});
      Letter posted;
      posted.tag = Tag::kPost;
      posted.iteration = context_.iteration;
      posted.edge = id;
      posted.task = next;
      posted.time_ns = now_ns;
      posted.to = peer(program_.edge(id).from_rank);
      context_.mail->tell(posted);
    }
  }
  for (Transfer& transfer : phase_) {
    if (!transfer.send || !peer_posted(transfer)) continue;
    Result<void> started = start_transfer(transfer, now_ns);
    if (!started.ok()) return started;
  }
  return {};
}

Result<void> RendezvousLoop::start_transfer(Transfer& transfer, std::int64_t now_ns) {
  const Edge& edge = program_.edge(transfer.edge);
  const Slot slot = edge.slot();
  const std::size_t index = message(transfer.edge, transfer.microbatch);
  Result<Payload> payload = context_.device->output(
      program_.task_id(edge.from, slot, transfer.microbatch), transfer.edge);
  if (!payload.ok()) return payload.error();
  transfer.started = true;
  transfer.end_ns = now_ns + world_.busy_ns()[index] + world_.slowest_latency_ns()[index];
  Letter letter;
  letter.tag = Tag::kMessage;
  letter.iteration = context_.iteration;
  letter.edge = transfer.edge;
  letter.task = program_.task_id(edge.to, slot, transfer.microbatch);
  letter.lane = context_.place.lane;
  letter.time_ns = std::max(posted_ns_, peer_posted_ns_[index]);
  letter.sent_ns = now_ns;
  letter.due_ns = transfer.end_ns;
  letter.to = peer(edge.to_rank);
  context_.mail->send(letter, std::move(*payload));
  return {};
}

Result<void> RendezvousLoop::on_letter(const Letter& letter, Payload payload, std::int64_t now_ns) {
  if (letter.tag == Tag::kGradient || letter.tag == Tag::kReduced) {
    return sync_.on_letter(letter, std::move(payload), now_ns);
  }
  const auto wrong = [&](const std::string& why) {
    return out_of_turn(letter, context_.grid, program_, why);
  };
  if (letter.tag != Tag::kPost && letter.tag != Tag::kMessage) {
    return wrong("which has no meaning in rendezvous execution");
  }
  const int microbatch = program_.microbatch_of(letter.task);
  const bool send = letter.tag == Tag::kPost;
  const auto found = std::find_if(phase_.begin(), phase_.end(), [&](const Transfer& transfer) {
    return transfer.send == send && transfer.edge == letter.edge &&
           transfer.microbatch == microbatch;
  });
  if (send) {
    std::int64_t& posted_ns = peer_posted_ns_[message(letter.edge, microbatch)];
    if (posted_ns >= 0) return wrong(kSentBefore);
    posted_ns = letter.time_ns;
    return found == phase_.end() ? Result<void>{} : start_transfer(*found, now_ns);
  }
  if (found == phase_.end()) return wrong("whose receive is not posted");
  if (found->done) return wrong(kSentBefore);
  found->done = true;
  record_.arrivals.push_back({letter.edge, microbatch, letter.time_ns, letter.sent_ns,
                              letter.due_ns, now_ns, now_ns, letter.bytes});
  ready_ns_ = now_ns;
  return context_.device->take_input(letter.task, program_.edge(letter.edge).from,
                                     std::move(payload));
}

void RendezvousLoop::end_phase(std::int64_t now_ns) {
  phase_.clear();
  const TaskId next = task_at(position_ + 1);
  state_ = next == kNoTask ? State::kAfter : State::kWaiting;
  if (next == kNoTask) return;
  for (const EdgeId id : inputs_of(next)) {
    if (!program_.edge(id).local()) machines_.on_input(next, program_.edge(id).from);
  }
  decide(now_ns);
}

void RendezvousLoop::decide(std::int64_t now_ns) {
  const Decision decision = machines_.decide(now_ns);
  if (decision.action != Decision::Action::kStart) return;
  state_ = State::kRunning;
  ++position_;
  decided_ns_ = now_ns;
  context_.device->launch(decision.task, now_ns + world_.start_delay_ns(), now_ns);
}

Result<bool> RendezvousLoop::step(std::int64_t now_ns) {
  bool moved = false;
  for (; next_root_ < roots_.size() && roots_[next_root_].time_ns <= now_ns; ++next_root_) {
    machines_.on_input(roots_[next_root_].task, RankScheduler::kRootInput);
    ready_ns_ = now_ns;
    moved = true;
  }
  if (moved && state_ == State::kWaiting) decide(now_ns);
  while (const std::optional<DeviceEvent> event = context_.device->poll(now_ns)) {
    Result<void> handled = on_device(*event, now_ns);
    if (!handled.ok()) return handled.error();
    moved = true;
  }
  if (state_ == State::kBefore) {
    Result<void> posted = post_phase(now_ns);
    if (!posted.ok()) return posted.error();
    moved = true;
  }
  if (state_ == State::kPhase) {
    bool over = true;
    for (Transfer& transfer : phase_) {
      if (transfer.send && transfer.started && now_ns >= transfer.end_ns) transfer.done = true;
      over = over && transfer.done;
    }
    if (over) {
      end_phase(now_ns);
      moved = true;
    }
  }
  const Result<bool> synced = sync_.step(now_ns);
  if (!synced.ok()) return synced;
  return moved || *synced;
}

Result<void> RendezvousLoop::on_device(const DeviceEvent& event, std::int64_t now_ns) {
  if (event.type == DeviceEvent::Type::kStarted) {
    just_started_ = event.task;
    record_.tasks.push_back(
        {event.task, 0, std::min(ready_ns_, decided_ns_), decided_ns_, event.time_ns, -1});
    if (context_.grid.lanes > 1) context_.device->on_group_start(event.task, event.time_ns);
    return {};
  }
  record_.tasks.back().end_ns = event.time_ns;
  machines_.on_finished(event.task, now_ns);
  Result<void> counted = sync_.on_finished(event.task, now_ns);
  if (!counted.ok()) return counted;
  ready_ns_ = now_ns;
  return post_phase(now_ns);
}

std::int64_t RendezvousLoop::next_ns() const {
  if (state_ == State::kBefore) return 0;
  std::int64_t next_ns = std::min(context_.device->next_event_ns(), sync_.next_ns());
  if (next_root_ < roots_.size()) next_ns = std::min(next_ns, roots_[next_root_].time_ns);
  if (state_ == State::kPhase) {
    bool open = false;
    for (const Transfer& transfer : phase_) {
      if (transfer.done) continue;
      open = true;
      next_ns = std::min(next_ns, transfer.end_ns);
    }
    if (!open) return 0;
  }
  return next_ns;
}

bool RendezvousLoop::finished() const { return state_ == State::kAfter && sync_.finished(); }

bool RendezvousLoop::quiet() const { return next_ns() == kNever && !context_.device->busy(); }

std::string RendezvousLoop::waiting(std::int64_t now_ns) const {
  const auto name = [&](TaskId task) { return to_string(program_.task(task)); };
  if (state_ == State::kRunning) {
    const std::int64_t since_ns = record_.tasks.empty() ? now_ns : record_.tasks.back().start_ns;
    return "runs " + name(task_at(position_)) + " since " +
           std::to_string((now_ns - since_ns) / 1'000'000) + " ms";
  }
  for (const Transfer& transfer : phase_) {
    if (transfer.done) continue;
    const Edge& edge = program_.edge(transfer.edge);
    const std::string channel = "channel rank " + std::to_string(edge.from_rank) + " -> rank " +
                                std::to_string(edge.to_rank);
    const Slot slot = edge.slot();
    const TaskId task = program_.task_id(edge.to, slot, transfer.microbatch);
    return transfer.send ? "waits for rank " + std::to_string(edge.to_rank) + " to receive what " +
                               name(task) + " needs, on " + channel
                         : "waits to run " + name(task) + ": for its input on " + channel;
  }
  const TaskId next = next_task();
  if (next != kNoTask) {
    const std::string memory = memory_wait(world_, machines_, context_.place.rank);
    return memory.empty() ? "waits to run " + name(next) + ", for its input" : memory;
  }
  const std::string gradient = sync_.waiting();
  return gradient.empty() ? "has done its part" : "waits for " + gradient;
}

WorkerRecord RendezvousLoop::take_record() {
  for (const TaskRecord& task : record_.tasks) {
    record_.end_ns = std::max(record_.end_ns, task.end_ns);
  }
  record_.end_ns = std::max(record_.end_ns, sync_.end_ns());
  record_.syncs = sync_.take_records();
  record_.peak_bytes = machines_.scheduler().admission().peak_bytes();
  return std::move(record_);
}

}  // namespace rrfp
