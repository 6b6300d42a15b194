// Where the time of a recorded job went, by replaying it with some of its
// durations made ideal (the method of arXiv 2505.05713).
//
//  replay    every recorded duration and transfer, without launch delay
//  ideal     every task and span of its own takes the mean of its type over the
//            whole trace, every message and collective the median of its type
//  slowdown  mean replay / mean ideal
//  by group  the ideal with only that group's recorded durations put back, over
//            the ideal: near 1, the group is not what makes the job slow
//
// Groups are stages, replicas, and operation types (where both ends of a
// message are one type).
//
// Thread safety: pure functions but for the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "sim/replay_step.h"
#include "traces/native_trace.h"
#include "traces/trace_source.h"

namespace rrfp {

/// Of one iteration, all in ns.
struct StepAnalysis {
  int iteration = 0;
  std::int64_t measured_ns = 0;
  std::int64_t replay_ns = 0;
  std::int64_t ideal_ns = 0;
  std::vector<std::int64_t> by_stage_ns;    ///< [stage]
  std::vector<std::int64_t> by_replica_ns;  ///< [replica]
  std::vector<std::int64_t> by_type_ns;     ///< [index into type_groups]
};

struct ReplayAnalysis {
  std::vector<StepAnalysis> steps;       ///< in order of the trace
  std::vector<std::string> types;        ///< as in ReplayTypes
  std::vector<std::int64_t> ideal_ns;    ///< by type
  std::vector<std::int64_t> operations;  ///< by type: how many
  std::vector<std::string> type_groups;  ///< F, B, I, W, F messages, B messages, spans
  DroppedRecords dropped;

  double replay_over_measured() const;
  double slowdown() const;
  /// Mean over all steps over the mean ideal.
  double stage_slowdown(int stage) const;
  double replica_slowdown(int replica) const;
  double type_slowdown(int group) const;
};

struct ReplayOptions {
  bool decompose = true;  ///< by stage, replica and type: a replay for each
};

/// Goes through the trace twice from its beginning, a step in memory at a
/// time. Medians are exact to 1/4096. The error is that of the file, or names
/// an iteration that cannot be replayed, or says that the trace has no task.
Result<ReplayAnalysis> analyse_trace(TraceSource& source, const ReplayOptions& options = {});
/// Of a file in any format that open_trace() takes; errors name it.
Result<ReplayAnalysis> analyse_trace(const std::string& path, const ReplayOptions& options = {});

}  // namespace rrfp
