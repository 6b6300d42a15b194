#include "traces/scenario_resolve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "scheduler_core/random.h"
#include "traces/case_file.h"
#include "traces/deterministic_math.h"
#include "traces/scenario_budget.h"
#include "traces/transfer.h"

namespace rrfp {

namespace {

// A factor exp(sigma z - sigma^2 / 2) with mean 1 and the given CV.
class LognormalFactor {
 public:
  explicit LognormalFactor(double cv)
      : variance_(deterministic_log(1 + cv * cv)), sigma_(std::sqrt(variance_)) {}

  double draw(const DrawKey& key) const {
    return deterministic_exp(sigma_ * normal_quantile(random_unit(key)) - variance_ / 2);
  }

 private:
  double variance_;
  double sigma_;
};

// What is too large for a run is cut to where check_magnitudes refuses it.
constexpr std::int64_t kTooLong = std::numeric_limits<std::int64_t>::max();

std::int64_t rounded(double ns) {
  return ns < 0x1p62 ? static_cast<std::int64_t>(ns + 0.5) : kTooLong;
}

std::int64_t capped_sum(std::int64_t a, std::int64_t b) {
  return a > kTooLong - b ? kTooLong : a + b;
}

// Which model, of which replica, for which lane. Bits: 24, 20, 20.
std::uint64_t purpose_of(std::size_t model, int replica, int lane) {
  return (static_cast<std::uint64_t>(model + 1) << 40) |
         (static_cast<std::uint64_t>(replica) << 20) | static_cast<std::uint64_t>(lane);
}

// A row (stage and slot, edge, rank) and the microbatch in it. Bits: 44, 20.
std::uint64_t element(int row, int microbatch) {
  return (static_cast<std::uint64_t>(row) << 20) | static_cast<std::uint64_t>(microbatch);
}

std::uint64_t element_of(ComputeScope scope, int stage, Slot slot, int microbatch, int rank) {
  switch (scope) {
    case ComputeScope::kOperation:
      return element(stage * kSlots + static_cast<int>(slot), microbatch);
    case ComputeScope::kMicrobatch:
      return element(0, microbatch);
    case ComputeScope::kRank:
      break;
  }
  return element(rank, 0);
}

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

void ScenarioResolver::draw_durations(int iteration, int replica, Case& out) const {
  struct Model {
    LognormalCompute model;
    LognormalFactor factor;
    DrawKey key;
  };
  std::vector<Model> models;
  bool all_known = true;
  for (std::size_t i = 0; i < scenario_.variability.size(); ++i) {
    const auto* model = std::get_if<LognormalCompute>(&scenario_.variability[i]);
    if (model == nullptr || model->cv == 0) continue;
    models.push_back({*model, LognormalFactor(model->cv),
                      DrawKey{scenario_.seed, static_cast<std::uint64_t>(iteration),
                              purpose_of(i, replica, 0), 0}});
    all_known = all_known && model->known;
  }
  const auto count = static_cast<std::size_t>(program_.task_ids());
  out.duration_ns.assign(count, 0);
  if (!all_known) out.expected_ns.assign(count, 0);
  for (TaskId id = 0; id < program_.task_ids(); ++id) {
    if (!program_.exists(id)) continue;
    const int stage = program_.stage_of(id);
    const int microbatch = program_.microbatch_of(id);
    const Slot slot = program_.slot_of(id);
    const StageTable& table = slot == Slot::kForward    ? scenario_.forward_ns
                              : slot == Slot::kBackward ? scenario_.backward_ns
                                                        : scenario_.weight_ns;
    double real = 1;
    double known = 1;
    for (Model& model : models) {
      model.key.index =
          element_of(model.model.scope, stage, slot, microbatch, program_.rank_of(stage));
      const double factor = model.factor.draw(model.key);
      real *= factor;
      if (model.model.known) known *= factor;
    }
    // Without a factor the time stays an integer, however large.
    const std::int64_t base = table.at(stage, microbatch);
    const auto scaled_by = [base](double factor) {
      return factor == 1 ? base : rounded(static_cast<double>(base) * factor);
    };
    out.duration_ns[static_cast<std::size_t>(id)] = scaled_by(real);
    if (!all_known) out.expected_ns[static_cast<std::size_t>(id)] = scaled_by(known);
  }
}

void ScenarioResolver::draw_latencies(int iteration, int replica, Case& out) const {
  std::vector<std::pair<std::size_t, LognormalFactor>> factors;
  std::vector<std::pair<std::size_t, LatencySpikes>> spikes;
  double mean_extra_ns = 0;
  for (std::size_t i = 0; i < scenario_.variability.size(); ++i) {
    if (const auto* model = std::get_if<LognormalLatency>(&scenario_.variability[i])) {
      if (model->cv > 0) factors.emplace_back(i, LognormalFactor(model->cv));
    } else if (const auto* spike = std::get_if<LatencySpikes>(&scenario_.variability[i])) {
      spikes.emplace_back(i, *spike);
      mean_extra_ns += spike->probability * static_cast<double>(spike->extra_ns);
    }
  }
  const std::int64_t base = scenario_.network.latency_ns;
  if (base == 0 && spikes.empty()) return;
  const bool varies = !factors.empty() || !spikes.empty();
  const std::int64_t mean = capped_sum(base, rounded(mean_extra_ns));
  const auto edges = static_cast<EdgeId>(program_.edges().size());
  out.network.latency_ns.resize(program_.edges().size());
  if (varies) out.network.expected_latency_ns.resize(program_.edges().size());
  for (EdgeId id = 0; id < edges; ++id) {
    if (!program_.edge(id).crosses()) continue;
    std::vector<std::int64_t>& ns = out.network.latency_ns[static_cast<std::size_t>(id)];
    for (int lane = 0; lane < scenario_.tensor_parallel.lanes; ++lane) {
      for (int m = 0; m < program_.microbatches(); ++m) {
        const auto key = [&](std::size_t model) {
          return DrawKey{scenario_.seed, static_cast<std::uint64_t>(iteration),
                         purpose_of(model, replica, lane), element(id, m)};
        };
        double factor = 1;
        for (const auto& [model, lognormal] : factors) factor *= lognormal.draw(key(model));
        std::int64_t value = factors.empty() ? base : rounded(static_cast<double>(base) * factor);
        for (const auto& [model, spike] : spikes) {
          if (random_unit(key(model)) < spike.probability) {
            value = capped_sum(value, spike.extra_ns);
          }
        }
        ns.push_back(value);
      }
    }
    if (varies) {
      out.network.expected_latency_ns[static_cast<std::size_t>(id)].assign(
          static_cast<std::size_t>(program_.microbatches()), mean);
    }
  }
}

Case ScenarioResolver::draw_world(int iteration, int replica) const {
  RRFP_CHECK(iteration >= 0 && iteration < scenario_.iterations);
  RRFP_CHECK(replica >= 0 && replica < scenario_.data_parallel.replicas);
  Case world = base_;
  draw_durations(iteration, replica, world);
  draw_latencies(iteration, replica, world);
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
