// One iteration of one worker, as the worker sees it: letters in, letters out,
// steps in between. Two kinds: message-driven (RankLoop) and with blocking
// batched send and receive (RendezvousLoop).
//
// Not thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/core_machines.h"
#include "executor/device.h"
#include "executor/grid.h"
#include "executor/records.h"
#include "executor/transport.h"

namespace rrfp {

/// What comes after the last task of a stage: with data parallelism the
/// replicas' gradients are summed stage by stage, then the optimizer steps.
struct IterationEnd {
  std::vector<std::int64_t> gradient_sync_ns;  ///< by stage; empty: no time
  std::int64_t optimizer_ns = 0;
};

/// Sends a worker's letters, and counts them: when all that was sent has been
/// received and nobody moves, the run is blocked.
class Mail {
 public:
  Mail(Transport& transport, int run) : transport_(&transport), run_(run) {}

  int endpoint() const { return transport_->endpoint(); }
  void tell(Letter letter) {
    letter.from = transport_->endpoint();
    letter.run = run_;
    letter.bytes = 0;
    if (is_of_iteration(letter.tag)) ++sent_;
    transport_->tell(letter);
  }
  void send(Letter letter, Payload payload) {
    if (payload.empty()) return tell(letter);
    letter.from = transport_->endpoint();
    letter.run = run_;
    letter.bytes = static_cast<std::int64_t>(payload.size());
    if (is_of_iteration(letter.tag)) ++sent_;
    transport_->send(letter, std::move(payload));
  }
  void count_received() { ++received_; }
  std::int64_t sent() const { return sent_; }
  std::int64_t received() const { return received_; }

 private:
  Transport* transport_;
  int run_;
  std::int64_t sent_ = 0;
  std::int64_t received_ = 0;
};

/// What a loop is made of. Everything outlives it.
struct LoopContext {
  Grid grid;
  Place place;
  const PreparedCase* world = nullptr;
  int iteration = 0;
  const IterationEnd* end = nullptr;
  CoreMachines* machines = nullptr;
  Device* device = nullptr;
  Mail* mail = nullptr;
};

class IterationLoop {
 public:
  virtual ~IterationLoop() = default;

  /// A letter that is due. Called from the start of the iteration on.
  virtual Result<void> on_letter(const Letter& letter, Payload payload, std::int64_t now_ns) = 0;

  /// Looks at the device and at the clock, and decides. Returns whether
  /// anything happened.
  virtual Result<bool> step(std::int64_t now_ns) = 0;

  /// When step() is worth a call without a letter; kNever.
  virtual std::int64_t next_ns() const = 0;

  /// This worker's part is done.
  virtual bool finished() const = 0;

  /// Nothing will happen here without a letter.
  virtual bool quiet() const = 0;

  /// The first task of its order that it has yet to decide, or kNoTask.
  virtual TaskId next_task() const = 0;

  /// True once after `task` has started (to inject faults).
  virtual bool just_started(TaskId task) = 0;

  /// What it waits for, for a person: rank, task, channel.
  virtual std::string waiting(std::int64_t now_ns) const = 0;

  /// Everything of this iteration so far.
  virtual WorkerRecord take_record() = 0;
};

std::unique_ptr<IterationLoop> make_loop(const LoopContext& context);

}  // namespace rrfp
