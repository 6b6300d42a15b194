// What `rrfp presets` prints: the library of traces/preset.h for people and for
// programs.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "scheduler_core/result.h"
#include "traces/json_value.h"
#include "traces/preset.h"
#include "traces/scenario.h"

namespace rrfp {

/// The error names the nearest preset.
Result<const Preset*> named_preset(const std::string& name);

/// All presets: what, parameters with their defaults, scope, source.
std::string list_presets();
JsonValue presets_to_json();

/// One preset in full, with an entry that spells its parameters out and the
/// models that it stands for in a pipeline of 8 ranks and 2 replicas.
std::string describe_preset(const Preset& preset);
JsonValue preset_to_json(const Preset& preset);

/// "note: presets: ..." where models of a scenario come from presets, which says
/// of each whether it is modelled; else empty.
std::string preset_note(const Scenario& scenario);

/// The same for programs: [{"name", "modelled"}].
JsonValue preset_uses_to_json(const Scenario& scenario);

}  // namespace rrfp
