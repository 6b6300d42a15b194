// Memory budgets of a scenario: in bytes, in activations, or like the peak of
// a named schedule, since a comparison is fair at equal memory only.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "traces/json_cursor.h"
#include "traces/scenario.h"

namespace rrfp {

/// Reads "budget_<size unit>" or "budget_activations"; nothing where neither
/// is there.
std::optional<Budget> read_budget(const JsonCursor& in, const ProgramSpec& pipeline);

/// Adds the same keys to an object; nothing where there are no limits.
void add_budget(JsonValue& out, const Budget& budget);

/// Activations that `schedule` needs at its peak, by rank, at most what there
/// is; empty where it is not one of those with a known peak. Chunked schedules
/// count chunk activations.
std::vector<std::int64_t> peak_activations(std::string_view schedule, const ProgramSpec& pipeline);

}  // namespace rrfp
