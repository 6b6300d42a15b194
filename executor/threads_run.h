// A whole run in this process: one thread per worker.
//
// Invariants
//  1. Returns within twice the patience and two seconds of any fault. A thread
//     that does not come back by then is left to itself, and what it uses is
//     kept; `left_behind` says so, and the program should end soon.
//  2. Nothing else is left behind: no thread, no file.
//
// Thread safety: one run at a time is meant; several work.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/device.h"
#include "executor/plan.h"
#include "executor/threads_transport.h"
#include "executor/worker.h"

namespace rrfp {

/// How a run ended, as far as this process knows.
struct RunOutcome {
  RunEnd end = RunEnd::kCompleted;
  std::string why;                   ///< empty where it completed
  std::vector<std::string> waiting;  ///< what each worker of this process waited for
  std::vector<Task> blocked;         ///< kBlocked: for each rank, its first undecided task
  bool left_behind = false;          ///< a thread did not come back
};

/// Makes the device of an endpoint.
using DeviceMaker = std::function<std::unique_ptr<Device>(const Place& place)>;

/// Makes what an endpoint's worker uses in place of `control`, the transport of
/// the job: for tensors that do not travel as bytes of the host.
using TransportMaker =
    std::function<std::unique_ptr<Transport>(const Place& place, Transport& control)>;

/// `plan` and `sink` are shared, since a thread that is left behind may use
/// them still. `stop` may be set by a signal handler. `make_transport` may be
/// empty.
RunOutcome run_on_threads(std::shared_ptr<const RunPlan> plan, const DeviceMaker& make_device,
                          std::shared_ptr<IterationSink> sink, const ThreadsTuning& tuning,
                          std::shared_ptr<std::atomic<bool>> stop,
                          const TransportMaker& make_transport = {});

/// How long to look before sleeping, for so many workers on this machine.
ThreadsTuning default_tuning(int workers);

}  // namespace rrfp
