// A simulated scenario as a native trace (rrfp.trace/1), or as files of the
// PyTorch profiler: what its job would have recorded.
//
// All iterations and replicas of one policy: tasks, messages, and where the
// scenario has them the synchronisation of gradients and the optimizer as
// spans. A microbatch is the position after arrangement. Stages that share a
// rank synchronise after its last task. Lanes run alike, so one stands for
// all. A message is matched when its transmission begins.
//
// Thread safety: pure functions but for the files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/kineto_writer.h"
#include "traces/native_trace.h"
#include "traces/scenario_resolve.h"

namespace rrfp {

/// The records of one iteration. The error names the policy and a run that
/// blocked.
Result<std::vector<TraceRecord>> native_records(const ScenarioResolver& resolver, int policy,
                                                int iteration);

/// Writes all iterations; `done` is called after each.
Result<void> export_native_trace(const ScenarioResolver& resolver, int policy,
                                 const std::string& path, const std::function<void()>& done = {});

/// The same as a folder of PyTorch profiler files. A receive is posted one
/// transfer before its message is sent, as it may be by a real receiver.
Result<void> export_kineto(const ScenarioResolver& resolver, int policy, const std::string& folder,
                           const KinetoWriterOptions& options,
                           const std::function<void()>& done = {});

}  // namespace rrfp
