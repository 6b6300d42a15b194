#include "experiments/policy_option.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace rrfp {

namespace {

Result<int> index_of(const std::string& wanted, const Scenario& scenario) {
  std::vector<std::string_view> names;
  for (const ScenarioPolicy& policy : scenario.policies) names.push_back(policy.name);
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  return not_one_of("--policy", wanted, names);
}

}  // namespace

Result<int> policy_option(const Options& options, const Scenario& scenario) {
  const std::optional<std::string> wanted = options.text(kPolicyRow.name);
  return wanted ? index_of(*wanted, scenario) : Result<int>(scenario.baseline);
}

Result<std::vector<int>> policies_option(const Options& options, const Scenario& scenario) {
  const std::optional<std::string> all_wanted = options.text(kPolicyRow.name);
  if (!all_wanted) {
    std::vector<int> all(scenario.policies.size());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  // A name may hold commas itself.
  if (const Result<int> one = index_of(*all_wanted, scenario); one.ok()) {
    return std::vector<int>{*one};
  }
  const Result<std::vector<std::string>> wanted = options.list(kPolicyRow.name);
  if (!wanted.ok()) return wanted.error();
  std::vector<int> policies;
  for (const std::string& name : *wanted) {
    const Result<int> index = index_of(name, scenario);
    if (!index.ok()) return index.error();
    if (std::find(policies.begin(), policies.end(), *index) == policies.end()) {
      policies.push_back(*index);
    }
  }
  return policies;
}

std::string policy_note(const Scenario& scenario, int policy) {
  const std::size_t count = scenario.policies.size();
  const std::string name = scenario.policies[static_cast<std::size_t>(policy)].name;
  const std::string text = "policy \"" + name + "\"";
  if (count == 1) return text + ", the only one\n";
  if (policy != scenario.baseline) return text + ", one of " + std::to_string(count) + "\n";
  return text + ", the baseline of " + std::to_string(count) + "; --policy NAME takes another\n";
}

Error chooses_from_scenario(std::string_view option, const std::string& file) {
  return Error{"--" + std::string(option) + " chooses from a scenario; " + file + " is a case"};
}

}  // namespace rrfp
