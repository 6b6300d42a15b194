// Checks a result against its case without simulating: whatever scheduled the
// run, these rules hold for it.
//
// Thread safety: a pure function.
#pragma once

#include <string>

#include "traces/case.h"
#include "traces/simulation_result.h"

namespace rrfp::model {

/// The first broken rule, in words; empty where the run keeps them all:
///  - each task runs once on its own rank, for its own time, after its
///    dispatch, and not before what it depends on has reached its rank;
///  - a rank runs one task at a time and holds at most queue_depth;
///  - a rank decides within its window;
///  - the bytes held stay within the budget, and their peak is the one given;
///  - links carry one message at a time, in the order of finishes (where the
///    result lists messages);
///  - busy and idle times add up to the makespan, which is the last end.
std::string check_run(const Case& given, const SimulationResult& result);

}  // namespace rrfp::model
