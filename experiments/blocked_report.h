// Why a run came to a stop: for each task that could not start, what it waits
// for.
//
// Thread safety: pure function.
#pragma once

#include <string>

#include "traces/case.h"
#include "traces/simulation_result.h"

namespace rrfp {

/// One line per blocked task, such as "rank 1: 1F1 waits for 0F1 (rank 0,
/// behind 0B0)". REQUIRES: `result` is that of `given`.
std::string describe_blocked(const Case& given, const SimulationResult& result);

}  // namespace rrfp
