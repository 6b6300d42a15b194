#include "experiments/policy_option.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace rrfp {

Result<int> policy_option(const Options& options, const std::vector<std::string>& names,
                          int usual) {
  const std::optional<std::string> wanted = options.text("policy");
  if (!wanted) return usual;
  const auto found = std::find(names.begin(), names.end(), *wanted);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  const std::vector<std::string_view> words(names.begin(), names.end());
  return not_one_of("--policy", *wanted, words);
}

Result<int> policy_option(const Options& options, const Scenario& scenario) {
  std::vector<std::string> names;
  for (const ScenarioPolicy& policy : scenario.policies) names.push_back(policy.name);
  return policy_option(options, names, scenario.baseline);
}

}  // namespace rrfp
