// A run as a timeline in the trace event format that Perfetto and Chrome read:
// one track per rank, an arrow per message, a memory counter per rank.
//
// Names are torch's: "3F0". Times are microseconds with three decimals, that
// is, exact to the nanosecond.
//
// Thread safety: pure function.
#pragma once

#include <string>

#include "scheduler_core/result.h"
#include "traces/case.h"
#include "traces/simulation_result.h"

namespace rrfp {

/// The text of the file. REQUIRES: `result` is that of `given`, with messages.
Result<std::string> timeline(const Case& given, const SimulationResult& result);

}  // namespace rrfp
