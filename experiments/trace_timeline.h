// A recorded job as a timeline for Perfetto and Chrome: one group of tracks per
// replica, in it a track per rank and lane, an arrow per message, and spans
// (collectives, the optimizer) beside the tasks that they may overlap.
//
// Iterations whose times begin anew each stand one after another.
//
// Thread safety: pure function but for the file that is read.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "scheduler_core/result.h"
#include "traces/trace_source.h"

namespace rrfp {

struct TraceTimeline {
  std::string text;  ///< of the file
  int iterations = 0;
  std::int64_t tasks = 0;
};

/// Of all iterations, or of `only`. The error is that of the reader, or names
/// an iteration that is not there.
Result<TraceTimeline> trace_timeline(TraceSource& source, std::optional<int> only);

}  // namespace rrfp
