// From a recorded iteration to cases, for what-if: the pipeline of each
// replica becomes a case that any policy and network can run, and what stands
// around it (collectives, optimizer) gives the length of the iteration back.
//
// Thread safety: pure functions; ReplayFrame is immutable after create().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler_core/result.h"
#include "sim/replay_step.h"
#include "traces/case.h"
#include "traces/trace_steps.h"

namespace rrfp {

/// One replica's iteration as recorded: durations, and each message's transfer
/// as its latency, in the recorded order as a window of 1 (with lanes, the
/// slowest of each). A span between two tasks of a rank lengthens the later
/// one. The error names a task that the trace lacks or holds twice.
Result<Case> replay_case(const TraceHeader& header, const TraceStep& step, int replica);

/// The spans before the first and after the last task of each rank.
class ReplayFrame {
 public:
  static Result<ReplayFrame> create(const TraceHeader& header, const TraceStep& step);

  /// From the start of the iteration until every rank may start its tasks.
  std::int64_t head_ns() const { return head_ns_; }

  /// The length of the iteration when the tasks of each rank end at `end_ns`
  /// ([replica * ranks + rank]) after they could start.
  std::int64_t step_ns(std::span<const std::int64_t> end_ns) const;

 private:
  explicit ReplayFrame(ReplayStep tail) : tail_(std::move(tail)) {}

  std::int64_t head_ns_ = 0;
  int ranks_ = 0;
  ReplayStep tail_;        ///< one task for all of a rank's, then its spans
  std::vector<int> rank_;  ///< by operation: where its length stands in end_ns; -1: a span
};

}  // namespace rrfp
