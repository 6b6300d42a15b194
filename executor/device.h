// The seam between a worker and what computes: launch a task, poll what
// finished. A device runs the tasks it is given one after another, in that
// order; it holds up to queue_depth of them.
//
// Tensors: inputs from other ranks come by take_input() before their task is
// launched; outputs for other ranks are fetched by output() at any time after
// the finish. Tensors between stages of one rank never leave the device.
//
// Invariants
//  1. Times are never dated back: a start or an end is the moment at which the
//     host saw it (or at which the device itself recorded it).
//  2. No call blocks but for the work it names. A device with threads of its
//     own wakes the worker through Transport::wake().
//
// Thread safety: the worker's thread makes all calls.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/clock.h"
#include "executor/letter.h"
#include "scheduler_core/result.h"
#include "traces/prepared_case.h"

namespace rrfp {

struct DeviceEvent {
  enum class Type : std::uint8_t { kStarted, kFinished };
  Type type = Type::kFinished;
  TaskId task = kNoTask;
  std::int64_t time_ns = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  /// Followed by warm_up(). Nothing is held; `world` outlives the iteration. Optimizer state and
  /// weights stay from one iteration to the next.
  virtual Result<void> begin(const PreparedCase& world, int iteration) = 0;
  /// Does the next part of what is still to be done before the first launch,
  /// and says how many parts are left then; until none is. What would take long
  /// in begin(): the worker says that it is alive between the parts.
  virtual Result<int> warm_up() { return 0; }

  /// An input of `task` from stage `producer`. May be empty.
  virtual Result<void> take_input(TaskId task, int producer, Payload payload) = 0;

  /// Runs `task` after what it holds already, no earlier than `not_before_ns`.
  virtual void launch(TaskId task, std::int64_t not_before_ns, std::int64_t now_ns) = 0;

  /// The next start or end, in order: a task starts before it finishes.
  virtual std::optional<DeviceEvent> poll(std::int64_t now_ns) = 0;

  /// When poll() is worth a call; kNever: nothing held, or the device wakes.
  virtual std::int64_t next_event_ns() const = 0;

  /// It will finish or start something without being told anything more.
  virtual bool busy() const = 0;

  /// All lanes of the group have started `task`, the last at `start_ns`: for
  /// devices whose collectives inside tasks are emulated.
  virtual void on_group_start(TaskId task, std::int64_t start_ns) = 0;

  /// What `task` sends along `edge`, once. May be empty.
  virtual Result<Payload> output(TaskId task, EdgeId edge) = 0;

  /// Data parallelism: this replica's gradient of a stage; the sum of all
  /// replicas' (in the order of replicas); and what to use from now on.
  virtual Result<Payload> gradient(int stage) = 0;
  virtual Result<Payload> reduce(int stage, std::span<Payload> replicas) = 0;
  virtual Result<void> take_gradient(int stage, Payload sum) = 0;

  /// The optimizer step, after the gradients of all stages.
  virtual Result<void> finish_iteration() = 0;

  /// The run ends early: nobody is to wait for this device any more.
  virtual void stop() {}

  /// What endpoint 0 is to be told of the iteration, after its end; in a form
  /// that only devices of this kind and their sink know.
  virtual std::vector<std::byte> report() { return {}; }
};

}  // namespace rrfp
