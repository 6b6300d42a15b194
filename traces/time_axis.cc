#include "traces/time_axis.h"

#include <algorithm>

#include "traces/saturating.h"
#include "traces/transfer.h"

namespace rrfp {

namespace {

// Over the microbatches of a stage, rounded down.
std::int64_t mean_ns(const StageTable& table, int stage, int microbatches) {
  if (table.shape != StageTable::Shape::kPerMicrobatch) return table.at(stage, 0);
  __extension__ using Wide = __int128;
  Wide sum = 0;
  for (int m = 0; m < microbatches; ++m) sum += table.at(stage, m);
  return static_cast<std::int64_t>(sum / microbatches);
}

}  // namespace

TimeAxis::TimeAxis(const Scenario& scenario, const Program& program)
    : first_(static_cast<std::size_t>(program.stages() * kSlots)) {
  place_first(scenario, program);
  for (int rank = 0; rank < program.ranks(); ++rank) {
    std::int64_t work_ns = 0;
    for (const int stage : program.stages_of(rank)) {
      for (const Slot slot : {Slot::kForward, Slot::kBackward, Slot::kWeight}) {
        const Times& times = of(stage, slot);
        work_ns = capped_sum(work_ns, times.end_ns - times.start_ns);
      }
    }
    interval_ns_ = std::max(interval_ns_, work_ns);
  }
  std::int64_t last_ns = 0;
  std::int64_t sync_ns = 0;
  for (int stage = 0; stage < program.stages(); ++stage) {
    for (const Slot slot : {Slot::kForward, Slot::kBackward, Slot::kWeight}) {
      last_ns = std::max(last_ns, task_end_ns(stage, slot, program.microbatches() - 1));
    }
    sync_ns = std::max(sync_ns, scenario.data_parallel.gradient_sync_ns.at(stage, 0));
  }
  iteration_ns_ = capped_sum(capped_sum(last_ns, sync_ns), scenario.data_parallel.optimizer_ns);
  spacing_ns_ = scenario.iteration_spacing_ns.value_or(iteration_ns_);
}

// Forwards by ascending stage, then backwards by descending stage, each when
// what it needs has arrived.
void TimeAxis::place_first(const Scenario& scenario, const Program& program) {
  const int microbatches = program.microbatches();
  const ScenarioNetwork& network = scenario.network;
  const auto arrival_ns = [&](const Edge& edge) {
    const std::int64_t end_ns = of(edge.from, edge.slot()).end_ns;
    if (edge.local()) return end_ns;
    const bool forward = edge.kind == Kind::kForward;
    const StageTable& bytes = forward ? network.activation_bytes : network.gradient_bytes;
    const std::int64_t busy_ns =
        transmission_ns(mean_ns(bytes, edge.from, microbatches), network.bytes_per_second);
    return capped_sum(end_ns, capped_sum(busy_ns, network.latency_ns));
  };
  const auto place = [&](int stage, Slot slot, std::int64_t start_ns, const StageTable& table) {
    for (const EdgeId id : program.edges_to(stage, slot)) {
      start_ns = std::max(start_ns, arrival_ns(program.edge(id)));
    }
    of(stage, slot) = {start_ns, capped_sum(start_ns, mean_ns(table, stage, microbatches))};
  };
  for (int stage = 0; stage < program.stages(); ++stage) {
    place(stage, Slot::kForward, 0, scenario.forward_ns);
  }
  for (int stage = program.stages(); stage-- > 0;) {
    if (!program.exists(program.task_id(stage, Slot::kBackward, 0))) continue;
    place(stage, Slot::kBackward, of(stage, Slot::kForward).end_ns, scenario.backward_ns);
    if (!program.exists(program.task_id(stage, Slot::kWeight, 0))) continue;
    place(stage, Slot::kWeight, of(stage, Slot::kBackward).end_ns, scenario.weight_ns);
  }
}

std::int64_t TimeAxis::start_ns(int iteration) const {
  return capped_product(spacing_ns_, iteration);
}

std::int64_t TimeAxis::task_start_ns(int stage, Slot slot, int microbatch) const {
  return capped_sum(of(stage, slot).start_ns, capped_product(interval_ns_, microbatch));
}

std::int64_t TimeAxis::task_end_ns(int stage, Slot slot, int microbatch) const {
  return capped_sum(of(stage, slot).end_ns, capped_product(interval_ns_, microbatch));
}

}  // namespace rrfp
