#include "experiments/policy_option.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace rrfp {

namespace {

Result<int> index_of(const std::string& wanted, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  const std::vector<std::string_view> words(names.begin(), names.end());
  return not_one_of("--policy", wanted, words);
}

}  // namespace

Result<int> policy_option(const Options& options, const std::vector<std::string>& names,
                          int usual) {
  const std::optional<std::string> wanted = options.text("policy");
  return wanted ? index_of(*wanted, names) : Result<int>(usual);
}

Result<std::vector<int>> policies_option(const Options& options,
                                         const std::vector<std::string>& names) {
  std::vector<int> policies;
  if (!options.text("policy")) {
    for (std::size_t i = 0; i < names.size(); ++i) policies.push_back(static_cast<int>(i));
    return policies;
  }
  // A name may hold commas itself.
  if (const Result<int> one = policy_option(options, names, 0); one.ok()) {
    return std::vector<int>{*one};
  }
  const Result<std::vector<std::string>> wanted = options.list("policy");
  if (!wanted.ok()) return wanted.error();
  for (const std::string& name : *wanted) {
    const Result<int> index = index_of(name, names);
    if (!index.ok()) return index.error();
    if (std::find(policies.begin(), policies.end(), *index) == policies.end()) {
      policies.push_back(*index);
    }
  }
  return policies;
}

Result<int> policy_option(const Options& options, const Scenario& scenario) {
  std::vector<std::string> names;
  for (const ScenarioPolicy& policy : scenario.policies) names.push_back(policy.name);
  return policy_option(options, names, scenario.baseline);
}

}  // namespace rrfp
