// One worker of a run: the thread that issues everything for one rank and
// lane. It moves letters between the transport, its iteration's loop and (at
// endpoint 0) the coordinator, holds letters back until they are due, sleeps
// when there is nothing to do, and says that it is alive.
//
// Invariants
//  1. A letter of an iteration is handled in that iteration, after it is due,
//     and in the order of (due, arrival).
//  2. run() returns within twice the patience and a second of any fault, a
//     stall of its own thread excepted.
//
// Thread safety: one thread; stop flags are atomic.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/coordinator.h"
#include "executor/iteration_loop.h"
#include "executor/plan.h"
#include "executor/transport.h"

namespace rrfp {

/// How a worker ended.
struct WorkerEnd {
  RunEnd end = RunEnd::kCompleted;
  std::string why;      ///< of the whole run; empty where it completed
  std::string waiting;  ///< what this worker waited for; empty where it completed
  std::string fault;    ///< why it could not get ready; empty: it could
  TaskId next_task = kNoTask;
};

/// A line that a signal handler may write at any time: what the worker waits
/// for. Shared by a process's one worker and its handlers.
class WaitingLine {
 public:
  void set(const std::string& text);
  /// Async-signal-safe.
  void write_to(int descriptor) const;

 private:
  static constexpr std::size_t kLength = 512;
  char lines_[2][kLength] = {};
  std::atomic<int> current_{0};
};

class Worker {
 public:
  /// `sink`: at endpoint 0, else null. `stop`: set by anybody, ends the run.
  Worker(const RunPlan& plan, Transport& transport, Device& device, const Clock& clock,
         IterationSink* sink, const std::atomic<bool>& stop, WaitingLine* line = nullptr);

  WorkerEnd run();

 private:
  struct Due {
    std::int64_t due_ns = 0;
    std::int64_t number = 0;  // of arrival
    Letter letter;
    Payload payload;
  };
  enum class State : std::uint8_t { kIdle, kWarmingUp, kPrepared, kRunning };
  static constexpr std::int64_t kUntilLeavingNs = 500'000'000;

  void turn();
  void take_deliveries(bool& moved);
  void on_arrival(Letter letter, Payload payload);
  void on_run_letter(const Letter& letter, Payload payload);
  void prepare(int iteration);
  void warm_up();
  void go(const Letter& letter);
  void enqueue(Letter letter, Payload payload);
  void run_iteration(bool& moved);
  void finish_iteration();
  void inject();
  void beat(std::int64_t local_now_ns);
  void watch_coordinator(std::int64_t local_now_ns);
  void send(Letter letter, Payload payload);
  void fail(const std::string& message);
  void ask_to_end(RunEnd why, const std::string& text);
  void stop(std::int64_t local_now_ns);
  void end(RunEnd why, const std::string& text);
  void note_lateness(std::int64_t late_ns);
  void sleep(std::int64_t local_now_ns);
  std::string name() const;
  std::string was_doing() const;
  /// What comes of the iteration is kept.
  bool before_go() const { return state_ == State::kWarmingUp || state_ == State::kPrepared; }
  bool is_coordinator() const { return coordinator_ != nullptr; }

  const RunPlan& plan_;
  Transport& transport_;
  Device& device_;
  RunClock clock_;
  Mail mail_;
  const std::atomic<bool>& stop_;
  WaitingLine* line_;
  Place place_;
  std::unique_ptr<Coordinator> coordinator_;
  std::deque<std::pair<Letter, Payload>> to_self_;

  State state_ = State::kIdle;
  int iteration_ = -1;
  std::unique_ptr<CoreMachines> machines_;
  std::unique_ptr<IterationLoop> loop_;
  std::deque<std::pair<Letter, Payload>> early_;  // of the next iteration
  std::vector<Due> due_;                          // a heap
  std::int64_t arrivals_ = 0;
  int parts_done_ = 0;  // of getting ready
  int parts_left_ = 0;

  std::int64_t next_beat_ns_ = 0;
  std::int64_t beats_ = 0;
  std::int64_t heard_ns_ = 0;        // of the coordinator
  std::int64_t awake_until_ns_ = 0;  // the next ping is near
  std::int64_t expected_look_ns_ = kNever;
  std::int64_t worst_stall_ns_ = 0;
  std::int64_t clock_offset_ns_ = 0;
  std::int64_t clock_error_ns_ = 0;
  std::int64_t leave_ns_ = kNever;  // was asked to stop
  bool ended_ = false;
  bool failed_ = false;  // this worker broke, and has said so
  WorkerEnd result_;
};

}  // namespace rrfp
