// Starts and ends the iterations of a run, measures clocks, and notices who is
// silent and whether the run is blocked. Part of endpoint 0.
//
// Blocked: in two rounds of heartbeats every worker was quiet, nobody moved in
// between, and as many letters were received as were sent (Mattern's
// four-counter method: sums that agree twice were true at one instant).
//
// A pure state machine: letters in, letters out, time as an argument. Not
// thread safe.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/plan.h"

namespace rrfp {

/// Follows what is said of somebody who was silent.
std::string while_getting_ready(int iteration);

class Coordinator {
 public:
  /// `shared_clock`: all workers read one clock, so none is measured.
  Coordinator(const RunPlan& plan, bool shared_clock, IterationSink& sink);

  /// Letters that are to be sent, in order; may be to endpoint 0 itself.
  using Outbox = std::deque<std::pair<Letter, Payload>>;
  Outbox& outbox() { return outbox_; }

  void start(std::int64_t local_now_ns);
  void on_letter(const Letter& letter, Payload payload, std::int64_t local_now_ns);
  /// Somebody wants the run to end, and why.
  void stop(RunEnd end, const std::string& why);
  void step(std::int64_t local_now_ns);
  std::int64_t next_local_ns() const;
  /// Clocks are being read: whoever sleeps now makes the error larger.
  bool measuring() const { return state_ == State::kMeasuring; }
  bool ended() const { return state_ == State::kEnded; }

 private:
  enum class State : std::uint8_t { kPreparing, kMeasuring, kRunning, kEnded };
  struct Peer {
    bool counted = false;  // ready, or done, in this state
    std::int64_t heard_ns = 0;
    std::int64_t beats = 0;
    std::int64_t sent = 0;
    std::int64_t received = 0;
    bool quiet = false;
    int parts_done = 0;  // of getting ready
    int parts_left = 0;
    TaskId next_task = kNoTask;
    std::int64_t offset_ns = 0;  // clock of endpoint 0 less its clock
    std::int64_t error_ns = 0;
    std::int64_t first_ping_ns = 0;
    std::int64_t ping_ns = 0;
    int pings = 0;
    std::int64_t best_trip_ns = kNever;
  };
  static constexpr int kPings = 64;
  // On a busy machine pings take milliseconds: then fewer have to do.
  static constexpr int kLeastPings = 8;
  static constexpr std::int64_t kMostPingNs = 20'000'000;

  void prepare();
  void measure(std::int64_t local_now_ns);
  void ping(int endpoint, std::int64_t local_now_ns);
  void on_pong(int endpoint, const Letter& letter, std::int64_t local_now_ns);
  void go(std::int64_t local_now_ns);
  void on_done(int endpoint, const Payload& payload);
  void finish_iteration();
  void look_for_silence(std::int64_t local_now_ns);
  void tell_progress();
  void look_for_block();
  bool all_counted() const;
  void send_to_all(const Letter& letter, const std::string& text = {});
  Letter letter_to(int endpoint, Tag tag) const;

  const RunPlan& plan_;
  const bool shared_clock_;
  IterationSink& sink_;
  State state_ = State::kPreparing;
  int iteration_ = 0;
  std::vector<Peer> peers_;
  int measuring_ = 0;  // the endpoint whose clock is measured
  std::vector<WorkerRecord> records_;
  std::vector<std::int64_t> block_beats_;  // of each peer when all looked blocked
  std::int64_t block_sum_ = -1;
  std::int64_t next_look_ns_ = 0;
  Outbox outbox_;
};

}  // namespace rrfp
