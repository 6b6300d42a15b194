// Reads and writes the list "variability" of a scenario; README.md of this
// folder says what may stand in it.
//
// Invariants
//  1. What is read again after it was written is the same.
//
// Thread safety: pure functions but for files that an entry names.
#pragma once

#include <string>

#include "traces/json_cursor.h"
#include "traces/scenario.h"

namespace rrfp {

/// Adds to scenario.variability. Stages, ranks and replicas are checked against
/// the scenario, of which all the rest has been read.
void read_variability(const JsonCursor& list, const std::string& folder, Scenario& scenario);

JsonValue variability_to_json(const std::vector<VariabilityModel>& models);

JsonValue model_to_json(const VariabilityModel& model);

}  // namespace rrfp
