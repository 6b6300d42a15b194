// Says where two results of one case differ.
#pragma once

#include <string>

#include "scheduler_core/result.h"
#include "traces/simulation_result.h"

namespace rrfp::model {

/// The first difference, in words; empty where all fields are equal. Two
/// errors are equal whatever they say. Records of messages are compared as
/// sets, for the order of equal finishes is free.
std::string difference(const Result<SimulationResult>& expected,
                       const Result<SimulationResult>& actual);

/// Without what a result file cannot hold: the instants of decisions, the
/// messages, and which of the two causes called communication it was.
SimulationResult as_in_a_file(SimulationResult result);

}  // namespace rrfp::model
