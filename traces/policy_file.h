// The "policy" object of case and scenario files: hint, window, arrangement,
// anticipation.
//
// Thread safety: as JsonCursor.
#pragma once

#include "scheduler_core/policy.h"
#include "traces/json_cursor.h"
#include "traces/json_value.h"

namespace rrfp {

/// Reads {"hint", "window", "arrange", "anticipation"}, all of them optional.
Policy read_policy(const JsonCursor& in, int ranks);

/// {"name"} or {"order", "called"}, with the parameters of the hints that have any. The name of an
/// order is what people call it: empty without "called".
HintSpec read_hint(const JsonCursor& in, int ranks);
Arrangement read_arrangement(const JsonCursor& in);
Anticipation read_anticipation(const JsonCursor& in);

JsonValue policy_to_json(const Policy& policy);
JsonValue hint_to_json(const HintSpec& hint);
JsonValue arrangement_to_json(Arrangement arrangement);
JsonValue anticipation_to_json(const Anticipation& anticipation);

}  // namespace rrfp
