#include "traces/scenario_resolve.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "traces/case_file.h"
#include "traces/scenario_budget.h"
#include "traces/transfer.h"

namespace rrfp {

namespace {

bool keeps_less_than_all(const ScenarioMemory& memory) {
  return std::any_of(memory.weight_stash_fraction.begin(), memory.weight_stash_fraction.end(),
                     [](double fraction) { return fraction < 1; });
}

Result<void> check_table(const StageTable& table, const ProgramSpec& pipeline, const char* name) {
  std::size_t size = 1;
  if (table.shape != StageTable::Shape::kUniform) size = pipeline.stages.size();
  if (table.shape == StageTable::Shape::kPerMicrobatch) {
    size *= static_cast<std::size_t>(pipeline.microbatches);
  }
  if (table.values.size() == size) return {};
  return Error{std::string(name) + " has " + std::to_string(table.values.size()) +
               " values; the pipeline needs " + std::to_string(size)};
}

}  // namespace

ScenarioResolver::ScenarioResolver(Scenario scenario, Program program)
    : scenario_(std::move(scenario)),
      program_(program),
      draws_(scenario_, program_),
      base_{.name = scenario_.name, .program = std::move(program)} {
  base_.input_ready_ns = scenario_.input_ready_ns;
  base_.dispatch_ns = scenario_.dispatch_ns;
  base_.queue_depth = scenario_.queue_depth;
  base_.tensor_parallel = scenario_.tensor_parallel;

  const ScenarioNetwork& network = scenario_.network;
  base_.network.mode = network.mode;
  base_.network.bytes_per_second = network.bytes_per_second;
  base_.network.notice_ns = network.notice_ns;
  base_.network.message_ns = network.message_ns.value_or(0);
  base_.network.link_delays = network.link_delays;

  const int microbatches = program_.microbatches();
  const ScenarioMemory& memory = scenario_.memory;
  const bool messages = !network.activation_bytes.zero() || !network.gradient_bytes.zero();
  if (messages) base_.network.message_bytes.resize(static_cast<std::size_t>(program_.task_ids()));
  const bool keeps_less = program_.split_backward() && keeps_less_than_all(memory);
  for (int stage = 0; stage < program_.stages(); ++stage) {
    for (int m = 0; m < microbatches; ++m) {
      const std::int64_t held = memory.activation_bytes.at(stage, m);
      base_.memory.activation_bytes.push_back(held);
      if (keeps_less) {
        const double stash = static_cast<double>(held) * memory.stash_fraction_of(stage);
        base_.memory.weight_stash_bytes.push_back(std::min(held, static_cast<std::int64_t>(stash)));
      }
      if (!messages) continue;
      const auto at = [&](Slot slot) -> std::int64_t& {
        return base_.network
            .message_bytes[static_cast<std::size_t>(program_.task_id(stage, slot, m))];
      };
      at(Slot::kForward) = network.activation_bytes.at(stage, m);
      at(Slot::kBackward) = network.gradient_bytes.at(stage, m);
    }
  }
}

Result<ScenarioResolver> ScenarioResolver::create(Scenario scenario) {
  Result<Program> program = Program::create(scenario.pipeline);
  if (!program.ok()) return program.error();
  const ProgramSpec& pipeline = scenario.pipeline;
  const std::pair<const StageTable&, const char*> tables[] = {
      {scenario.forward_ns, "forward"},
      {scenario.backward_ns, "backward"},
      {scenario.weight_ns, "weight_gradient"},
      {scenario.network.activation_bytes, "network activation"},
      {scenario.network.gradient_bytes, "network gradient"},
      {scenario.memory.activation_bytes, "memory activation"},
      {scenario.data_parallel.gradient_sync_ns, "gradient_sync"}};
  for (const auto& [table, name] : tables) {
    if (Result<void> checked = check_table(table, pipeline, name); !checked.ok()) {
      return checked.error();
    }
  }
  const std::size_t fractions = scenario.memory.weight_stash_fraction.size();
  if (fractions != 1 && fractions != pipeline.stages.size()) {
    return Error{"weight_stash_fraction has " + std::to_string(fractions) +
                 " values; the pipeline needs 1 or " + std::to_string(pipeline.stages.size())};
  }
  return ScenarioResolver(std::move(scenario), *std::move(program));
}

Case ScenarioResolver::draw_world(int iteration, int replica) const {
  RRFP_CHECK(iteration >= 0 && iteration < scenario_.iterations);
  RRFP_CHECK(replica >= 0 && replica < scenario_.data_parallel.replicas);
  Case world = base_;
  draws_.draw(scenario_, {iteration, replica}, world);
  return world;
}

std::vector<std::optional<std::int64_t>> ScenarioResolver::budget_bytes(int policy) const {
  const ScenarioPolicy& chosen = scenario_.policies[static_cast<std::size_t>(policy)];
  const Budget& budget = chosen.budget ? *chosen.budget : scenario_.memory.budget;
  const std::vector<std::int64_t> activations =
      budget.like.empty() ? budget.activations : peak_activations(budget.like, scenario_.pipeline);
  if (activations.empty()) return budget.bytes;
  std::vector<std::optional<std::int64_t>> bytes;
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    // An activation of the rank is its largest: what each may come to.
    std::int64_t largest = 0;
    for (const int stage : program_.stages_of(rank)) {
      for (int m = 0; m < program_.microbatches(); ++m) {
        largest = std::max(largest, scenario_.memory.activation_bytes.at(stage, m));
      }
    }
    __extension__ using Wide = __int128;
    const Wide product = Wide{activations[static_cast<std::size_t>(rank)]} * largest;
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    bytes.emplace_back(product > kMost ? kMost : static_cast<std::int64_t>(product));
  }
  return bytes;
}

NetworkMode ScenarioResolver::mode_of(int policy) const {
  return scenario_.policies[static_cast<std::size_t>(policy)].mode.value_or(scenario_.network.mode);
}

bool ScenarioResolver::derives_message_ns(int policy) const {
  return mode_of(policy) == NetworkMode::kLaunchQueue && !scenario_.network.message_ns;
}

Result<void> ScenarioResolver::apply(int policy, Case& world) const {
  const ScenarioPolicy& chosen = scenario_.policies[static_cast<std::size_t>(policy)];
  world.name = scenario_.name.empty() ? chosen.name : scenario_.name + ": " + chosen.name;
  world.policy = chosen.policy;
  world.network.mode = mode_of(policy);
  world.network.message_ns =
      derives_message_ns(policy) ? mean_transfer_ns(world) : base_.network.message_ns;
  world.memory.budget_bytes = budget_bytes(policy);
  return check_magnitudes(world);
}

Result<Case> ScenarioResolver::resolve(int policy, int iteration, int replica) const {
  RRFP_CHECK(policy >= 0 && static_cast<std::size_t>(policy) < scenario_.policies.size());
  Case world = draw_world(iteration, replica);
  if (Result<void> applied = apply(policy, world); !applied.ok()) return applied.error();
  return world;
}

}  // namespace rrfp
