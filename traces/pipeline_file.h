// What case and scenario files share about a pipeline: its stages, and the
// delays of its links.
//
// Thread safety: as JsonCursor.
#pragma once

#include <string>
#include <vector>

#include "scheduler_core/program.h"
#include "traces/case.h"
#include "traces/json_cursor.h"
#include "traces/json_value.h"

namespace rrfp {

/// A chain where nothing is said about predecessors. What only the whole graph
/// can tell is left to Program::create.
std::vector<StageSpec> read_stages(const JsonCursor& in, int ranks);

JsonValue stages_to_json(const std::vector<StageSpec>& stages);

/// `time_key` is the name of the delay in an entry.
JsonValue link_delays_to_json(const std::vector<LinkDelay>& delays, const std::string& time_key);

}  // namespace rrfp
