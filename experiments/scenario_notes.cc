#include "experiments/scenario_notes.h"

#include <algorithm>

#include "experiments/display_units.h"
#include "experiments/text_list.h"

namespace rrfp {

namespace {

// What an iteration has beyond the tasks of one replica.
std::string end_of_iteration(const Scenario& scenario) {
  const DataParallel& group = scenario.data_parallel;
  std::string text;
  if (group.replicas > 1) {
    add_to_list(text, "the slowest of " + std::to_string(group.replicas) + " replicas");
  }
  const std::vector<std::int64_t>& sync_ns = group.gradient_sync_ns.values;
  const std::int64_t longest_ns = *std::max_element(sync_ns.begin(), sync_ns.end());
  if (longest_ns > 0) {
    add_to_list(text,
                "gradient synchronisation of up to " + time_with_unit(longest_ns) + " a stage");
  }
  if (group.optimizer_ns > 0)
    add_to_list(text, "an optimizer of " + time_with_unit(group.optimizer_ns));
  return text;
}

bool gives_no_size(const Scenario& scenario) {
  return scenario.memory.activation_bytes == ScenarioMemory().activation_bytes;
}

}  // namespace

std::string makespan_note(const Scenario& scenario) {
  const std::string end = end_of_iteration(scenario);
  if (end.empty()) return "";
  return "note: one replica, to the end of its last task; an iteration, which `rrfp sweep` gives, "
         "also has " +
         end + "\n";
}

std::string iteration_note(const Scenario& scenario) {
  const std::string end = end_of_iteration(scenario);
  if (end.empty()) return "";
  return "note: whole iterations, with " + end +
         "; the makespan of `rrfp simulate` is one replica without those\n";
}

std::int64_t largest_activation_bytes(const Scenario& scenario) {
  const std::vector<std::int64_t>& bytes = scenario.memory.activation_bytes.values;
  return std::max<std::int64_t>(1, *std::max_element(bytes.begin(), bytes.end()));
}

std::string activation_note(const Scenario& scenario) {
  if (gives_no_size(scenario)) {
    return "note: memory in activations of one stage and microbatch; the scenario gives no size "
           "(/memory/activation_mb)\n";
  }
  return "note: memory in activations, of which the largest is " +
         bytes_with_unit(largest_activation_bytes(scenario)) + "\n";
}

std::string unit_memory_note(const Scenario& scenario) {
  if (!gives_no_size(scenario)) return "";
  return "note: a byte of memory is an activation of one stage and microbatch; the scenario gives "
         "no size (/memory/activation_mb)\n";
}

}  // namespace rrfp
