// --variability of `rrfp init`: the worlds to compare in, by the names of
// presets, and the scenario text that asks for them.
//
// Thread safety: pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/options.h"
#include "scheduler_core/result.h"

namespace rrfp {

inline constexpr OptionRow kVariabilityRow = {"variability", "PRESET,...",
                                              "worlds to compare in (`rrfp presets`); A+B: both in "
                                              "one"};

/// Each world is a list of presets.
using Worlds = std::vector<std::vector<std::string>>;

/// Empty where the option is not given. The error names the preset nearest to
/// one that there is not.
Result<Worlds> read_worlds(const Options& options);

/// The member "variability" of a scenario with its comma; of several worlds a
/// grid over it. `entry` gives, indented as asked, what else varies in each
/// world; it may be empty. REQUIRES: there is a world.
std::string variability_text(const Worlds& worlds,
                             const std::function<std::string(const std::string& indent)>& entry);

}  // namespace rrfp
