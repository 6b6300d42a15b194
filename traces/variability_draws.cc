#include "traces/variability_draws.h"

#include <algorithm>
#include <utility>

#include "traces/saturating.h"
#include "traces/transfer.h"

namespace rrfp {

namespace {

// Without a factor the time stays an integer, however large.
std::int64_t scaled_ns(std::int64_t base_ns, double factor) {
  return factor == 1 ? base_ns : rounded_ns(static_cast<double>(base_ns) * factor);
}

const StageTable& base_table(const Scenario& scenario, Slot slot) {
  if (slot == Slot::kForward) return scenario.forward_ns;
  return slot == Slot::kBackward ? scenario.backward_ns : scenario.weight_ns;
}

// Models on message tables, with room for what they do.
MessageTable message_table(const Program& program, int lanes) {
  MessageTable table;
  table.latency.resize(program.edges().size());
  const auto messages = static_cast<std::size_t>(lanes * program.microbatches());
  for (std::size_t id = 0; id < table.latency.size(); ++id) {
    if (program.edges()[id].crosses()) table.latency[id].resize(messages);
  }
  return table;
}

// The link is busy for the base time; what a transmission takes longer, or less,
// comes on top of the latency, which cannot become less than nothing.
std::int64_t with_transmission(std::int64_t latency_ns, std::int64_t busy_ns, double factor) {
  const double change_ns = static_cast<double>(busy_ns) * (factor - 1);
  if (change_ns >= 0) return capped_sum(latency_ns, rounded_ns(change_ns));
  return std::max<std::int64_t>(0, latency_ns - rounded_ns(-change_ns));
}

}  // namespace

VariabilityDraws::VariabilityDraws(const Scenario& scenario, const Program& program) {
  if (scenario.variability.empty()) return;
  const auto axis = std::make_shared<const TimeAxis>(scenario, program);
  for (std::size_t i = 0; i < scenario.variability.size(); ++i) {
    auto model = make_world_model(scenario.variability[i], i, scenario, program, axis);
    if (model) models_.push_back(std::move(model));
  }
}

void VariabilityDraws::draw(const Scenario& scenario, const WorldId& world, Case& out) const {
  draw_durations(scenario, world, out);
  for (const auto& model : models_) model->scale_messages(world, out.network.message_bytes);
  draw_latencies(scenario, world, out);
  draw_inputs(world, out);
}

void VariabilityDraws::draw_durations(const Scenario& scenario, const WorldId& world,
                                      Case& out) const {
  const Program& program = out.program;
  const auto count = static_cast<std::size_t>(program.task_ids());
  ComputeTable table;
  table.tasks.resize(count);
  for (const auto& model : models_) model->apply(world, table);
  out.duration_ns.assign(count, 0);
  if (!table.all_known) out.expected_ns.assign(count, 0);
  for (TaskId id = 0; id < program.task_ids(); ++id) {
    if (!program.exists(id)) continue;
    const StageTable& times = base_table(scenario, program.slot_of(id));
    const std::int64_t base_ns = times.at(program.stage_of(id), program.microbatch_of(id));
    const Effect& effect = table.tasks[static_cast<std::size_t>(id)];
    out.duration_ns[static_cast<std::size_t>(id)] =
        capped_sum(scaled_ns(base_ns, effect.factor), effect.extra_ns);
    if (table.all_known) continue;
    out.expected_ns[static_cast<std::size_t>(id)] = capped_sum(
        scaled_ns(base_ns, effect.expected_factor), rounded_ns(effect.expected_extra_ns));
  }
}

void VariabilityDraws::draw_latencies(const Scenario& scenario, const WorldId& world,
                                      Case& out) const {
  const Program& program = out.program;
  MessageTable table = message_table(program, scenario.tensor_parallel.lanes);
  for (const auto& model : models_) model->apply(world, table);
  const std::int64_t base_ns = scenario.network.latency_ns;
  if (base_ns == 0 && !table.adds) return;
  const auto microbatches = static_cast<std::size_t>(program.microbatches());
  out.network.latency_ns.resize(program.edges().size());
  if (table.varies) out.network.expected_latency_ns.resize(program.edges().size());
  for (std::size_t id = 0; id < program.edges().size(); ++id) {
    const Edge& edge = program.edges()[id];
    if (!edge.crosses()) continue;
    const auto busy_ns = [&](std::size_t message) -> std::int64_t {
      if (out.network.message_bytes.empty()) return 0;
      const int m = static_cast<int>(message % microbatches);
      const TaskId sender = program.task_id(edge.from, edge.slot(), m);
      return transmission_ns(out.network.message_bytes[static_cast<std::size_t>(sender)],
                             out.network.bytes_per_second);
    };
    std::vector<std::int64_t>& real = out.network.latency_ns[id];
    for (std::size_t i = 0; i < table.latency[id].size(); ++i) {
      const Effect& effect = table.latency[id][i];
      std::int64_t ns = capped_sum(scaled_ns(base_ns, effect.factor), effect.extra_ns);
      if (!table.transmission.empty()) {
        ns = with_transmission(ns, busy_ns(i), table.transmission[id][i].factor);
      }
      real.push_back(ns);
      if (!table.varies || i >= microbatches) continue;
      ns = capped_sum(scaled_ns(base_ns, effect.expected_factor),
                      rounded_ns(effect.expected_extra_ns));
      if (!table.transmission.empty()) {
        ns = with_transmission(ns, busy_ns(i), table.transmission[id][i].expected_factor);
      }
      out.network.expected_latency_ns[id].push_back(ns);
    }
  }
}

void VariabilityDraws::draw_inputs(const WorldId& world, Case& out) const {
  const bool late = std::any_of(models_.begin(), models_.end(),
                                [](const auto& model) { return model->on_inputs(); });
  if (!late) return;
  out.input_ready_ns.resize(static_cast<std::size_t>(out.program.microbatches()), 0);
  for (const auto& model : models_) model->delay_inputs(world, out.input_ready_ns);
}

}  // namespace rrfp
