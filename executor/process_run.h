// This process's part of a run over a transport between processes: one worker.
//
// Thread safety: one at a time.
#pragma once

#include <atomic>

#include "executor/threads_run.h"

namespace rrfp {

/// `sink` is used at endpoint 0 only. `line` always says what this worker waits
/// for, so that a signal handler can write it. REQUIRES: as many endpoints as
/// the plan has workers.
RunOutcome run_in_process(const RunPlan& plan, Device& device, IterationSink& sink,
                          Transport& transport, const std::atomic<bool>& stop, WaitingLine& line);

}  // namespace rrfp
