// The list of stages in case and scenario files.
//
// Thread safety: as JsonCursor.
#pragma once

#include <vector>

#include "scheduler_core/program.h"
#include "traces/json_cursor.h"
#include "traces/json_value.h"

namespace rrfp {

/// A chain where nothing is said about predecessors. What only the whole graph
/// can tell is left to Program::create.
std::vector<StageSpec> read_stages(const JsonCursor& in, int ranks);

JsonValue stages_to_json(const std::vector<StageSpec>& stages);

}  // namespace rrfp
