// The option --policy: one of the policies of a scenario, or several, by name.
// A command that runs one takes the baseline unless it is told another, and
// says so on its first line.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/options.h"
#include "scheduler_core/result.h"
#include "traces/scenario.h"

namespace rrfp {

inline constexpr OptionRow kPolicyRow = {
    "policy", "NAME", "of a scenario: which of its policies (default: its baseline)"};

/// The index of the policy that --policy names; the baseline where it is not given.
Result<int> policy_option(const Options& options, const Scenario& scenario);

/// Several, separated by commas, in that order; all of them where --policy is
/// not given.
Result<std::vector<int>> policies_option(const Options& options, const Scenario& scenario);

/// The line that says which policy a command runs.
std::string policy_note(const Scenario& scenario, int policy);

/// For an option that was given with the case `file`.
Error chooses_from_scenario(std::string_view option, const std::string& file);

}  // namespace rrfp
