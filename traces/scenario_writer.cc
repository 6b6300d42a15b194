#include "traces/atomic_file.h"
#include "traces/pipeline_file.h"
#include "traces/policy_file.h"
#include "traces/scenario_budget.h"
#include "traces/scenario_file.h"
#include "traces/scenario_words.h"
#include "traces/variability_file.h"

namespace rrfp {

namespace {

JsonValue pipeline_to_json(const ProgramSpec& pipeline) {
  JsonValue out{JsonObject()};
  out.add("ranks", JsonValue(pipeline.ranks));
  out.add("microbatches", JsonValue(pipeline.microbatches));
  out.add("split_backward", JsonValue(pipeline.split_backward));
  out.add("ordered_accumulation", JsonValue(pipeline.ordered_accumulation));
  out.add("stages", stages_to_json(pipeline.stages));
  return out;
}

JsonValue durations_to_json(const Scenario& scenario) {
  const bool split = scenario.pipeline.split_backward;
  JsonValue out{JsonObject()};
  out.add("forward_ns", stage_table_to_json(scenario.forward_ns));
  out.add(split ? "input_gradient_ns" : "backward_ns", stage_table_to_json(scenario.backward_ns));
  if (split) out.add("weight_gradient_ns", stage_table_to_json(scenario.weight_ns));
  return out;
}

JsonValue tensor_parallel_to_json(const TensorParallel& group) {
  JsonValue out{JsonObject()};
  out.add("lanes", JsonValue(group.lanes));
  out.add("coordination", JsonValue(to_word(kCoordinations, group.coordination)));
  out.add("vote_ns", JsonValue(group.vote_ns));
  out.add("announce_ns", JsonValue(group.announce_ns));
  return out;
}

JsonValue data_parallel_to_json(const DataParallel& group) {
  JsonValue out{JsonObject()};
  out.add("replicas", JsonValue(group.replicas));
  out.add("gradient_sync_ns", stage_table_to_json(group.gradient_sync_ns));
  out.add("optimizer_ns", JsonValue(group.optimizer_ns));
  return out;
}

JsonValue network_to_json(const ScenarioNetwork& network) {
  JsonValue out{JsonObject()};
  out.add("mode", JsonValue(to_word(kModes, network.mode)));
  out.add("bandwidth_bytes_per_second", JsonValue(network.bytes_per_second));
  out.add("latency_ns", JsonValue(network.latency_ns));
  out.add("notice_ns", JsonValue(network.notice_ns));
  out.add("activation_bytes", stage_table_to_json(network.activation_bytes));
  out.add("gradient_bytes", stage_table_to_json(network.gradient_bytes));
  if (network.message_ns) out.add("message_ns", JsonValue(*network.message_ns));
  out.add("link_delays", link_delays_to_json(network.link_delays, "delay_ns"));
  return out;
}

JsonValue memory_to_json(const ScenarioMemory& memory) {
  JsonValue out{JsonObject()};
  out.add("activation_bytes", stage_table_to_json(memory.activation_bytes));
  const std::vector<double>& stash = memory.weight_stash_fraction;
  if (stash.size() == 1) {
    out.add("weight_stash_fraction", json_fraction(stash.front()));
  } else {
    JsonArray list;
    for (const double fraction : stash) list.push_back(json_fraction(fraction));
    out.add("weight_stash_fraction", JsonValue(std::move(list)));
  }
  add_budget(out, memory.budget);
  return out;
}

JsonValue scenario_policy_to_json(const ScenarioPolicy& policy) {
  JsonValue out{JsonObject()};
  out.add("name", JsonValue(policy.name));
  out.add("hint", hint_to_json(policy.policy.hint));
  out.add("window",
          policy.policy.window == kNoWindow ? JsonValue("none") : JsonValue(policy.policy.window));
  out.add("arrange", arrangement_to_json(policy.policy.arrangement));
  out.add("anticipation", policy.policy.anticipation
                              ? anticipation_to_json(*policy.policy.anticipation)
                              : JsonValue(false));
  if (policy.budget) add_budget(out, *policy.budget);
  if (policy.mode) out.add("network_mode", JsonValue(to_word(kModes, *policy.mode)));
  return out;
}

}  // namespace

JsonValue scenario_to_json(const Scenario& scenario) {
  JsonValue out{JsonObject()};
  out.add("schema", JsonValue(kScenarioSchema));
  out.add("name", JsonValue(scenario.name));
  out.add("seed", JsonValue(static_cast<std::int64_t>(scenario.seed)));
  out.add("iterations", JsonValue(scenario.iterations));
  if (scenario.iteration_spacing_ns) {
    out.add("iteration_spacing_ns", JsonValue(*scenario.iteration_spacing_ns));
  }
  out.add("pipeline", pipeline_to_json(scenario.pipeline));
  out.add("durations", durations_to_json(scenario));
  if (!scenario.input_ready_ns.empty()) {
    out.add("input_ready_ns", json_integers(scenario.input_ready_ns));
  }
  out.add("dispatch_ns", JsonValue(scenario.dispatch_ns));
  out.add("queue_depth", JsonValue(scenario.queue_depth));
  out.add("tensor_parallel", tensor_parallel_to_json(scenario.tensor_parallel));
  out.add("data_parallel", data_parallel_to_json(scenario.data_parallel));
  out.add("network", network_to_json(scenario.network));
  out.add("memory", memory_to_json(scenario.memory));
  out.add("variability", variability_to_json(scenario.variability));
  JsonArray policies;
  for (const ScenarioPolicy& policy : scenario.policies) {
    policies.push_back(scenario_policy_to_json(policy));
  }
  out.add("policies", JsonValue(std::move(policies)));
  const auto baseline = static_cast<std::size_t>(scenario.baseline);
  if (baseline < scenario.policies.size()) {
    out.add("baseline", JsonValue(scenario.policies[baseline].name));
  }
  return out;
}

Result<void> write_scenario_file(const std::string& path, const Scenario& scenario) {
  return write_file_atomically(path,
                               to_text(scenario_to_json(scenario), JsonLayout::kReadable) + "\n");
}

}  // namespace rrfp
