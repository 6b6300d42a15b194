// Everything about a run that is decided before it starts; the same in every
// worker.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "executor/core_machines.h"
#include "executor/grid.h"
#include "executor/iteration_loop.h"
#include "executor/records.h"
#include "traces/prepared_case.h"

namespace rrfp {

/// Why a run ended.
enum class RunEnd : std::int32_t {
  kCompleted,
  kBlocked,  ///< a set of orders, or a budget, that cannot go on
  kFault,    ///< something broke, or somebody is gone
  kStopped,  ///< somebody asked for it
};

/// A fault to inject, for tests and rehearsals.
struct Injected {
  enum class Kind : std::uint8_t {
    kStall,   ///< the thread sleeps for `ns` right after the task has started
    kSilent,  ///< it stops answering, for good
    kKill,    ///< the process kills itself with SIGKILL
  };
  Kind kind = Kind::kStall;
  int endpoint = 0;
  int iteration = 0;
  TaskId task = kNoTask;
  std::int64_t ns = 0;
};

struct RunTuning {
  std::int64_t heartbeat_ns = 100'000'000;
  /// A worker that is not heard of for so long is taken for lost. The run ends
  /// within twice this and a second.
  std::int64_t patience_ns = 5'000'000'000;
  /// From the go to the start of an iteration.
  std::int64_t lead_ns = 1'000'000;
};

struct RunPlan {
  int run = 0;  ///< numbers the runs of one job, over one transport
  Grid grid;
  /// [iteration][replica]; owned by whoever made the plan.
  std::vector<std::vector<const PreparedCase*>> worlds;
  IterationEnd end;
  CoreOptions core;
  RunTuning tuning;
  std::vector<Injected> injected;

  int iterations() const { return static_cast<int>(worlds.size()); }
  const PreparedCase& world(int iteration, int replica) const {
    return *worlds[static_cast<std::size_t>(iteration)][static_cast<std::size_t>(replica)];
  }
  /// The machines of the iteration before may go on: the schedulers are told
  /// the same things.
  bool keeps_machines(int iteration, int replica) const {
    return iteration > 0 &&
           same_for_schedulers(world(iteration - 1, replica), world(iteration, replica));
  }
};

/// How far the worker is that has most left to do before an iteration can start.
struct GettingReady {
  int iteration = 0;
  int endpoint = 0;
  int parts_done = 0;  ///< of what devices do one part at a time, see Device::warm_up()
  int parts = 0;
};

/// Takes finished iterations, in order, on the thread of endpoint 0.
class IterationSink {
 public:
  virtual ~IterationSink() = default;
  virtual Result<void> on_iteration(IterationRecord record) = 0;
  /// Time and again while workers get ready for an iteration.
  virtual void on_getting_ready([[maybe_unused]] const GettingReady& progress) {}
};

/// The channels of tensors, (from, to). In rounds: no endpoint is in two of one
/// round, so that processes which connect one channel after the other, in this
/// order, do so side by side.
std::vector<std::pair<int, int>> tensor_channels(const RunPlan& plan);

/// Who talks to whom, (from, to).
std::vector<std::pair<int, int>> pairs_that_talk(const RunPlan& plan);

}  // namespace rrfp
