// Runs a case in virtual time: the one entry point for every network mode.
#pragma once

#include "scheduler_core/result.h"
#include "traces/case.h"
#include "traces/prepared_case.h"
#include "traces/simulation_result.h"

namespace rrfp {

struct SimulateOptions {
  bool idle_causes = true;  ///< attribute every idle nanosecond
  bool messages = false;    ///< record every message
};

/// The result of `input`, exact to the nanosecond. A blocked run is a value
/// with completed == false. The error says what is wrong with the case: a
/// budget below the least that works, a hint that does not fit, a mode that
/// needs a window of 1.
Result<SimulationResult> simulate(const Case& input, const SimulateOptions& options = {});
Result<SimulationResult> simulate(const PreparedCase& prepared,
                                  const SimulateOptions& options = {});

}  // namespace rrfp
