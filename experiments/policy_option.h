// The option --policy: one of the policies of a file, or several, by name.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "experiments/options.h"
#include "scheduler_core/result.h"
#include "traces/scenario.h"

namespace rrfp {

/// The index in `names` of what --policy says; `usual` where it is not given.
Result<int> policy_option(const Options& options, const std::vector<std::string>& names, int usual);

/// The same among the policies of a scenario, whose usual one is its baseline.
Result<int> policy_option(const Options& options, const Scenario& scenario);

/// Several, separated by commas, in that order; all of them where --policy is
/// not given.
Result<std::vector<int>> policies_option(const Options& options,
                                         const std::vector<std::string>& names);

}  // namespace rrfp
