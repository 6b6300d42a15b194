#include "executor/coordinator.h"

#include <algorithm>
#include <cstring>

#include "executor/letter_check.h"

namespace rrfp {

std::string while_getting_ready(int iteration) {
  return ", while getting ready for iteration " + std::to_string(iteration);
}

Coordinator::Coordinator(const RunPlan& plan, bool shared_clock, IterationSink& sink)
    : plan_(plan),
      shared_clock_(shared_clock),
      sink_(sink),
      peers_(static_cast<std::size_t>(plan.grid.size())) {}

Letter Coordinator::letter_to(int endpoint, Tag tag) const {
  Letter letter;
  letter.tag = tag;
  letter.to = endpoint;
  letter.iteration = iteration_;
  return letter;
}

void Coordinator::send_to_all(const Letter& letter, const std::string& text) {
  for (int endpoint = 0; endpoint < plan_.grid.size(); ++endpoint) {
    Letter copy = letter;
    copy.to = endpoint;
    Payload payload(text.size());
    if (!text.empty()) std::memcpy(payload.data(), text.data(), text.size());
    outbox_.emplace_back(copy, std::move(payload));
  }
}

void Coordinator::start(std::int64_t local_now_ns) {
  for (Peer& peer : peers_) peer.heard_ns = local_now_ns;
  next_look_ns_ = local_now_ns + plan_.tuning.heartbeat_ns;
  prepare();
}

void Coordinator::prepare() {
  if (iteration_ == plan_.iterations()) {
    stop(RunEnd::kCompleted, "");
    return;
  }
  state_ = State::kPreparing;
  for (Peer& peer : peers_) {
    peer.counted = false;
    peer.parts_done = peer.parts_left = 0;
  }
  records_.clear();
  send_to_all(letter_to(0, Tag::kPrepare));
}

bool Coordinator::all_counted() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.counted; });
}

void Coordinator::on_letter(const Letter& letter, Payload payload, std::int64_t local_now_ns) {
  Peer& peer = peers_[static_cast<std::size_t>(letter.from)];
  peer.heard_ns = local_now_ns;
  switch (letter.tag) {
    case Tag::kReady:
      if (state_ != State::kPreparing || letter.iteration != iteration_) break;
      peer.counted = true;
      if (all_counted()) measure(local_now_ns);
      break;
    case Tag::kPong:
      on_pong(letter.from, letter, local_now_ns);
      break;
    case Tag::kDone:
      on_done(letter.from, payload);
      break;
    case Tag::kBeat:
      peer.beats = letter.sequence;
      peer.sent = letter.time_ns;
      peer.received = letter.sent_ns;
      peer.quiet = letter.flag != 0;
      peer.next_task = letter.task;
      if (letter.iteration == iteration_) {
        peer.parts_done = std::max(letter.edge, 0);
        peer.parts_left = std::max(letter.stage, 0);
      }
      look_for_block();
      break;
    case Tag::kEnd: {
      std::string why(payload.size(), ' ');
      if (!payload.empty()) std::memcpy(why.data(), payload.data(), payload.size());
      stop(static_cast<RunEnd>(letter.stage), why);
      break;
    }
    default:
      break;
  }
}

void Coordinator::measure(std::int64_t local_now_ns) {
  state_ = State::kMeasuring;
  measuring_ = 0;
  if (shared_clock_ || plan_.grid.size() == 1) {
    go(local_now_ns);
    return;
  }
  measuring_ = 1;
  ping(measuring_, local_now_ns);
}

void Coordinator::ping(int endpoint, std::int64_t local_now_ns) {
  Peer& peer = peers_[static_cast<std::size_t>(endpoint)];
  peer.pings = 0;
  peer.best_trip_ns = kNever;
  peer.first_ping_ns = peer.ping_ns = local_now_ns;
  outbox_.emplace_back(letter_to(endpoint, Tag::kPing), Payload());
}

// The clock of the peer was read between the ping and the pong; the shortest
// trip bounds the error best.
void Coordinator::on_pong(int endpoint, const Letter& letter, std::int64_t local_now_ns) {
  if (state_ != State::kMeasuring || endpoint != measuring_) return;
  Peer& peer = peers_[static_cast<std::size_t>(endpoint)];
  const std::int64_t trip_ns = local_now_ns - peer.ping_ns;
  if (trip_ns < peer.best_trip_ns) {
    peer.best_trip_ns = trip_ns;
    peer.offset_ns = peer.ping_ns + trip_ns / 2 - letter.time_ns;
    peer.error_ns = (trip_ns + 1) / 2;
  }
  const bool slow = local_now_ns - peer.first_ping_ns > kMostPingNs;
  if (++peer.pings < (slow ? kLeastPings : kPings)) {
    peer.ping_ns = local_now_ns;
    outbox_.emplace_back(letter_to(endpoint, Tag::kPing), Payload());
    return;
  }
  if (++measuring_ < plan_.grid.size()) {
    ping(measuring_, local_now_ns);
  } else {
    go(local_now_ns);
  }
}

void Coordinator::go(std::int64_t local_now_ns) {
  state_ = State::kRunning;
  block_sum_ = -1;
  for (int endpoint = 0; endpoint < plan_.grid.size(); ++endpoint) {
    Peer& peer = peers_[static_cast<std::size_t>(endpoint)];
    peer.counted = peer.quiet = false;
    Letter letter = letter_to(endpoint, Tag::kGo);
    letter.time_ns = local_now_ns + plan_.tuning.lead_ns;
    letter.sent_ns = peer.offset_ns;
    letter.due_ns = 0;
    letter.sequence = peer.error_ns;
    outbox_.emplace_back(letter, Payload());
  }
}

void Coordinator::on_done(int endpoint, const Payload& payload) {
  if (state_ != State::kRunning) return;
  Result<WorkerRecord> record = to_record(payload);
  Result<void> right;
  if (record.ok()) right = check_record(*record, plan_, endpoint, iteration_);
  if (!record.ok() || !right.ok()) {
    const Error& wrong = record.ok() ? right.error() : record.error();
    stop(RunEnd::kFault, worker_name(plan_.grid, endpoint) + ": " + wrong.message);
    return;
  }
  // One that tells of its end twice is not two.
  if (peers_[static_cast<std::size_t>(endpoint)].counted) return;
  records_.push_back(std::move(*record));
  peers_[static_cast<std::size_t>(endpoint)].counted = true;
  if (all_counted()) finish_iteration();
}

void Coordinator::finish_iteration() {
  std::sort(records_.begin(), records_.end(),
            [](const WorkerRecord& a, const WorkerRecord& b) { return a.endpoint < b.endpoint; });
  Result<void> taken = sink_.on_iteration({iteration_, std::move(records_)});
  records_ = {};
  if (!taken.ok()) {
    stop(RunEnd::kFault, taken.error().message);
    return;
  }
  ++iteration_;
  prepare();
}

void Coordinator::stop(RunEnd end, const std::string& why) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  Letter letter = letter_to(0, Tag::kEnd);
  letter.stage = static_cast<std::int32_t>(end);
  send_to_all(letter, why);
}

void Coordinator::look_for_silence(std::int64_t local_now_ns) {
  for (int endpoint = 1; endpoint < plan_.grid.size(); ++endpoint) {
    const Peer& peer = peers_[static_cast<std::size_t>(endpoint)];
    const std::int64_t silent_ns = local_now_ns - peer.heard_ns;
    if (silent_ns <= plan_.tuning.patience_ns) continue;
    const bool getting_ready = state_ == State::kPreparing && !peer.counted;
    stop(RunEnd::kFault, worker_name(plan_.grid, endpoint) + " has not answered for " +
                             std::to_string(silent_ns / 1'000'000) + " ms" +
                             (getting_ready ? while_getting_ready(iteration_) : ""));
    return;
  }
}

void Coordinator::tell_progress() {
  if (state_ != State::kPreparing) return;
  const auto slowest =
      std::max_element(peers_.begin(), peers_.end(),
                       [](const Peer& a, const Peer& b) { return a.parts_left < b.parts_left; });
  if (slowest->parts_left == 0) return;
  sink_.on_getting_ready({iteration_, static_cast<int>(slowest - peers_.begin()),
                          slowest->parts_done, slowest->parts_done + slowest->parts_left});
}

void Coordinator::look_for_block() {
  if (state_ != State::kRunning) return;
  std::int64_t sent = 0;
  std::int64_t received = 0;
  for (const Peer& peer : peers_) {
    if (!peer.quiet) {
      block_sum_ = -1;
      return;
    }
    sent += peer.sent;
    received += peer.received;
  }
  if (sent != received || all_counted()) {
    block_sum_ = -1;
    return;
  }
  if (sent != block_sum_) {
    block_sum_ = sent;
    block_beats_.clear();
    for (const Peer& peer : peers_) block_beats_.push_back(peer.beats);
    return;
  }
  std::string tasks;
  for (std::size_t endpoint = 0; endpoint < peers_.size(); ++endpoint) {
    // Everybody has looked again since.
    if (peers_[endpoint].beats <= block_beats_[endpoint] + 1) return;
    const TaskId task = peers_[endpoint].next_task;
    const Place place = plan_.grid.place(static_cast<int>(endpoint));
    if (task == kNoTask || place.lane > 0) continue;
    if (!tasks.empty()) tasks += ", ";
    tasks += to_string(plan_.world(iteration_, place.replica).program().task(task));
  }
  stop(RunEnd::kBlocked,
       "blocked: nothing runs, nothing is on its way, and nothing can start; next are " + tasks);
}

void Coordinator::step(std::int64_t local_now_ns) {
  if (state_ == State::kEnded || local_now_ns < next_look_ns_) return;
  next_look_ns_ = local_now_ns + plan_.tuning.heartbeat_ns;
  look_for_silence(local_now_ns);
  tell_progress();
}

std::int64_t Coordinator::next_local_ns() const {
  return state_ == State::kEnded ? kNever : next_look_ns_;
}

}  // namespace rrfp
