#include "executor/worker.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "executor/letter_check.h"

namespace rrfp {

namespace {

// The letter that is due first stands at the front of the heap.
constexpr auto kLater = [](const auto& a, const auto& b) {
  return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.number > b.number;
};

}  // namespace

void WaitingLine::set(const std::string& text) {
  const int other = 1 - current_.load(std::memory_order_relaxed);
  char* line = lines_[other];
  const std::size_t length = std::min(text.size(), kLength - 2);
  std::memcpy(line, text.data(), length);
  line[length] = '\n';
  line[length + 1] = '\0';
  current_.store(other, std::memory_order_release);
}

void WaitingLine::write_to(int descriptor) const {
  const char* line = lines_[current_.load(std::memory_order_acquire)];
  const ssize_t written = write(descriptor, line, strnlen(line, kLength));
  static_cast<void>(written);
}

Worker::Worker(const RunPlan& plan, Transport& transport, Device& device, const Clock& clock,
               IterationSink* sink, const std::atomic<bool>& stop, WaitingLine* line)
    : plan_(plan),
      transport_(transport),
      device_(device),
      clock_(clock),
      mail_(transport, plan.run),
      stop_(stop),
      line_(line),
      place_(plan.grid.place(transport.endpoint())) {
  if (transport.endpoint() != 0) return;
  RRFP_CHECK(sink != nullptr);
  coordinator_ = std::make_unique<Coordinator>(plan, transport.shares_clock(), *sink);
}

std::string Worker::name() const { return worker_name(plan_.grid, transport_.endpoint()); }

WorkerEnd Worker::run() {
  const std::int64_t start_ns = clock_.local_now_ns();
  heard_ns_ = start_ns;
  next_beat_ns_ = start_ns;
  if (coordinator_) coordinator_->start(start_ns);
  while (!ended_) turn();
  // What was sent last must leave; a peer that is gone does not hold it up.
  const std::int64_t give_up_ns = clock_.local_now_ns() + 1'000'000'000;
  while (!transport_.flushed() && clock_.local_now_ns() < give_up_ns) sleep_for_ns(50'000);
  // To stop a device may take long; by now the others know why.
  if (result_.end != RunEnd::kCompleted) device_.stop();
  return result_;
}

void Worker::turn() {
  bool moved = false;
  take_deliveries(moved);
  if (stop_.load(std::memory_order_relaxed)) {
    stop(clock_.local_now_ns());
  }
  if (coordinator_) {
    const std::int64_t local_now_ns = clock_.local_now_ns();
    coordinator_->step(local_now_ns);
    while (!coordinator_->outbox().empty()) {
      auto [letter, payload] = std::move(coordinator_->outbox().front());
      coordinator_->outbox().pop_front();
      send(letter, std::move(payload));
      moved = true;
    }
  }
  if (state_ == State::kWarmingUp && !ended_ && !failed_) {
    warm_up();
    moved = true;
  }
  if (state_ == State::kRunning && !ended_ && !failed_) run_iteration(moved);
  const std::int64_t local_now_ns = clock_.local_now_ns();
  if (local_now_ns >= next_beat_ns_) beat(local_now_ns);
  if (!moved && !ended_ && to_self_.empty()) sleep(local_now_ns);
}

void Worker::take_deliveries(bool& moved) {
  while (!to_self_.empty()) {
    auto [letter, payload] = std::move(to_self_.front());
    to_self_.pop_front();
    on_arrival(letter, std::move(payload));
    moved = true;
  }
  Delivery delivery;
  while (!ended_ && transport_.poll(delivery)) {
    moved = true;
    if (delivery.event == Delivery::Event::kAnnounced) {
      transport_.receive(delivery.letter);
    } else if (delivery.letter.run == plan_.run) {
      const Result<void> right = check_letter(delivery.letter, plan_, transport_.endpoint());
      if (!right.ok()) {
        fail(right.error().message);
        continue;
      }
      on_arrival(delivery.letter, std::move(delivery.payload));
    }
  }
  // Where a way of tensors broke, the coordinator can be told still; else it will notice.
  if (const Result<void> status = transport_.status(); !status.ok()) {
    fail(status.error().message);
    end(RunEnd::kFault, status.error().message);
  }
}

void Worker::on_arrival(Letter letter, Payload payload) {
  if (!is_of_iteration(letter.tag)) {
    on_run_letter(letter, std::move(payload));
    return;
  }
  mail_.count_received();
  if (letter.iteration > iteration_ || (letter.iteration == iteration_ && before_go())) {
    early_.emplace_back(letter, std::move(payload));
  } else if (letter.iteration == iteration_ && loop_ != nullptr) {
    enqueue(letter, std::move(payload));
  }
}

void Worker::on_run_letter(const Letter& letter, Payload payload) {
  const std::int64_t local_now_ns = clock_.local_now_ns();
  if (letter.from == 0) heard_ns_ = local_now_ns;
  switch (letter.tag) {
    case Tag::kPrepare:
      prepare(letter.iteration);
      break;
    case Tag::kPing: {
      Letter pong;
      pong.tag = Tag::kPong;
      pong.to = 0;
      pong.time_ns = local_now_ns;
      send(pong, Payload());
      awake_until_ns_ = local_now_ns + 200'000;
      break;
    }
    case Tag::kGo:
      if (state_ != State::kPrepared) {
        fail("rank 0 has started an iteration that is not prepared");
        break;
      }
      go(letter);
      break;
    case Tag::kEnd:
      if (letter.from == 0) {
        std::string why(payload.size(), ' ');
        if (!payload.empty()) std::memcpy(why.data(), payload.data(), payload.size());
        end(static_cast<RunEnd>(letter.stage), why);
        break;
      }
      [[fallthrough]];
    default:
      if (coordinator_) coordinator_->on_letter(letter, std::move(payload), local_now_ns);
  }
}

void Worker::prepare(int iteration) {
  if (iteration != iteration_ + 1 || state_ != State::kIdle) {
    return fail("rank 0 has prepared iteration " + std::to_string(iteration) + " after " +
                std::to_string(iteration_));
  }
  iteration_ = iteration;
  const PreparedCase& world = plan_.world(iteration, place_.replica);
  if (machines_ && plan_.keeps_machines(iteration, place_.replica)) {
    machines_->reset();
  } else {
    auto made = std::make_unique<CoreMachines>(world, place_, plan_.core);
    if (machines_) made->adopt_means(*machines_);
    machines_ = std::move(made);
  }
  if (Result<void> begun = device_.begin(world, iteration); !begun.ok()) {
    fail(begun.error().message);
    return;
  }
  parts_done_ = parts_left_ = 0;
  state_ = State::kWarmingUp;
}

// A part; then this worker is ready.
void Worker::warm_up() {
  const Result<int> left = device_.warm_up();
  if (!left.ok()) return fail(left.error().message);
  ++parts_done_;
  parts_left_ = *left;
  if (parts_left_ > 0) return;
  LoopContext context;
  context.grid = plan_.grid;
  context.place = place_;
  context.world = &plan_.world(iteration_, place_.replica);
  context.iteration = iteration_;
  context.end = &plan_.end;
  context.machines = machines_.get();
  context.device = &device_;
  context.mail = &mail_;
  loop_ = make_loop(context);
  due_.clear();
  state_ = State::kPrepared;
  Letter ready;
  ready.tag = Tag::kReady;
  ready.to = 0;
  ready.iteration = iteration_;
  send(ready, Payload());
}

void Worker::go(const Letter& letter) {
  clock_offset_ns_ = letter.sent_ns;
  clock_error_ns_ = letter.sequence;
  clock_.set(letter.sent_ns, letter.time_ns);
  state_ = State::kRunning;
  worst_stall_ns_ = 0;
  expected_look_ns_ = kNever;
  // Letters of a peer that saw the go before this worker did.
  std::deque<std::pair<Letter, Payload>> early = std::move(early_);
  early_.clear();
  for (auto& [kept, payload] : early) {
    if (kept.iteration == iteration_) {
      enqueue(kept, std::move(payload));
    } else {
      early_.emplace_back(kept, std::move(payload));
    }
  }
}

void Worker::enqueue(Letter letter, Payload payload) {
  due_.push_back({letter.due_ns, arrivals_++, letter, std::move(payload)});
  std::push_heap(due_.begin(), due_.end(), kLater);
}

void Worker::run_iteration(bool& moved) {
  const std::int64_t now_ns = clock_.now_ns();
  if (now_ns < 0) return;
  if (expected_look_ns_ != kNever) note_lateness(now_ns - expected_look_ns_);
  expected_look_ns_ = now_ns;
  while (!due_.empty() && due_.front().due_ns <= now_ns) {
    std::pop_heap(due_.begin(), due_.end(), kLater);
    Due next = std::move(due_.back());
    due_.pop_back();
    if (next.letter.tag == Tag::kMessage && !transport_.devices_copy()) {
      note_lateness(now_ns - next.due_ns);
    }
    moved = true;
    Result<void> taken = loop_->on_letter(next.letter, std::move(next.payload), now_ns);
    if (!taken.ok()) return fail(taken.error().message);
  }
  const Result<bool> stepped = loop_->step(now_ns);
  if (!stepped.ok()) return fail(stepped.error().message);
  moved = moved || *stepped;
  if (!plan_.injected.empty()) inject();
  if (loop_->finished()) {
    finish_iteration();
    moved = true;
  }
}

void Worker::note_lateness(std::int64_t late_ns) {
  worst_stall_ns_ = std::max(worst_stall_ns_, late_ns);
}

void Worker::finish_iteration() {
  WorkerRecord record = loop_->take_record();
  record.worst_stall_ns = worst_stall_ns_;
  record.clock_offset_ns = clock_offset_ns_;
  record.clock_error_ns = clock_error_ns_;
  record.calls = machines_->take_calls();
  record.report = device_.report();
  loop_.reset();
  state_ = State::kIdle;
  due_.clear();
  Letter done;
  done.tag = Tag::kDone;
  done.to = 0;
  done.iteration = iteration_;
  send(done, to_payload(record));
}

void Worker::inject() {
  for (const Injected& fault : plan_.injected) {
    if (fault.endpoint != transport_.endpoint() || fault.iteration != iteration_) continue;
    if (!loop_->just_started(fault.task)) continue;
    if (fault.kind == Injected::Kind::kKill) raise(SIGKILL);
    if (fault.kind == Injected::Kind::kSilent) {
      while (!stop_.load(std::memory_order_relaxed)) sleep_for_ns(10'000'000);
      end(RunEnd::kStopped, "stopped");
      return;
    }
    sleep_for_ns(fault.ns);
  }
}

void Worker::beat(std::int64_t local_now_ns) {
  next_beat_ns_ = local_now_ns + plan_.tuning.heartbeat_ns;
  Letter beat;
  beat.tag = Tag::kBeat;
  beat.iteration = iteration_;
  beat.sequence = ++beats_;
  beat.time_ns = mail_.sent();
  beat.sent_ns = mail_.received();
  const bool running = state_ == State::kRunning && loop_ != nullptr;
  beat.flag = due_.empty() && early_.empty() && (!running || loop_->quiet()) && !before_go();
  beat.task = running ? loop_->next_task() : kNoTask;
  if (state_ == State::kWarmingUp) {
    beat.edge = parts_done_;
    beat.stage = parts_left_;
  }
  beat.to = 0;
  send(beat, Payload());
  if (line_ != nullptr && running) {
    line_->set(name() + " " + loop_->waiting(clock_.now_ns()));
  }
  if (!is_coordinator()) return watch_coordinator(local_now_ns);
  for (int endpoint = 1; endpoint < plan_.grid.size(); ++endpoint) {
    beat.to = endpoint;
    send(beat, Payload());
  }
}

void Worker::watch_coordinator(std::int64_t local_now_ns) {
  if (local_now_ns - heard_ns_ <= plan_.tuning.patience_ns * 3 / 2) return;
  end(RunEnd::kFault, "rank 0 has not answered for " +
                          std::to_string((local_now_ns - heard_ns_) / 1'000'000) + " ms" +
                          (before_go() ? while_getting_ready(iteration_) : ""));
}

void Worker::send(Letter letter, Payload payload) {
  letter.from = transport_.endpoint();
  letter.run = plan_.run;
  if (letter.to == transport_.endpoint()) {
    to_self_.emplace_back(letter, std::move(payload));
    return;
  }
  mail_.send(letter, std::move(payload));
}

void Worker::fail(const std::string& message) {
  if (failed_) return;
  failed_ = true;
  const std::string text = name() + ": " + message;
  if (state_ != State::kRunning) result_.fault = text;
  ask_to_end(RunEnd::kFault, text);
}

// Tells the coordinator, which ends the run for everybody.
void Worker::ask_to_end(RunEnd why, const std::string& text) {
  if (coordinator_) {
    coordinator_->stop(why, text);
    return;
  }
  Letter letter;
  letter.tag = Tag::kEnd;
  letter.stage = static_cast<std::int32_t>(why);
  letter.to = 0;
  Payload payload(text.size());
  std::memcpy(payload.data(), text.data(), text.size());
  send(letter, std::move(payload));
}

// Somebody wants this worker to stop: then all do. Where the coordinator does
// not answer, this one leaves alone.
void Worker::stop(std::int64_t local_now_ns) {
  if (leave_ns_ == kNever) {
    leave_ns_ = local_now_ns + kUntilLeavingNs;
    ask_to_end(RunEnd::kStopped, "stopped");
  }
  if (local_now_ns >= leave_ns_) end(RunEnd::kStopped, "stopped");
}

void Worker::end(RunEnd why, const std::string& text) {
  if (ended_) return;
  ended_ = true;
  result_.end = why;
  if (why == RunEnd::kCompleted) return;
  result_.why = text;
  result_.waiting = name() + " " + was_doing();
  if (loop_ != nullptr && state_ == State::kRunning) result_.next_task = loop_->next_task();
}

std::string Worker::was_doing() const {
  const std::string iteration = "iteration " + std::to_string(iteration_);
  if (loop_ != nullptr && state_ == State::kRunning) return loop_->waiting(clock_.now_ns());
  if (state_ == State::kWarmingUp) {
    return "was getting ready for " + iteration + ", " + std::to_string(parts_done_) + " of " +
           std::to_string(parts_done_ + parts_left_) + " parts done";
  }
  if (state_ == State::kPrepared) return "was ready for " + iteration;
  if (failed_ && loop_ == nullptr) return "could not get ready for " + iteration;
  return "was between iterations, or had done its part";
}

void Worker::sleep(std::int64_t local_now_ns) {
  if (local_now_ns < awake_until_ns_ || (coordinator_ && coordinator_->measuring())) return;
  std::int64_t until_ns = std::min(next_beat_ns_, leave_ns_);
  if (coordinator_) until_ns = std::min(until_ns, coordinator_->next_local_ns());
  if (state_ == State::kRunning && loop_ != nullptr) {
    std::int64_t next_ns = loop_->next_ns();
    if (!due_.empty()) next_ns = std::min(next_ns, due_.front().due_ns);
    next_ns = std::max<std::int64_t>(next_ns, 0);
    until_ns = std::min(until_ns, clock_.to_local(next_ns));
    expected_look_ns_ = next_ns;
  }
  if (until_ns > local_now_ns) transport_.wait(until_ns);
}

}  // namespace rrfp
