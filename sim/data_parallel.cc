#include "sim/data_parallel.h"

#include <algorithm>

#include "scheduler_core/check.h"

namespace rrfp {

ReplicaEnds replica_ends(const Program& program, const EagerEngine& engine) {
  ReplicaEnds ends;
  ends.makespan_ns = engine.makespan_ns();
  for (int stage = 0; stage < program.stages(); ++stage) {
    // Where some backwards are fused and others split, the last of both kinds: an I is never
    // the last, since its W follows it.
    ends.accumulated_ns.push_back(program.backward_of(stage) == Backward::kFull
                                      ? std::max(engine.last_end_ns(stage, Slot::kBackward),
                                                 engine.last_end_ns(stage, Slot::kWeight))
                                      : kNoGradient);
  }
  return ends;
}

ReplicaEnds replica_ends(const Program& program, const SimulationResult& result) {
  ReplicaEnds ends;
  ends.makespan_ns = result.makespan_ns;
  ends.accumulated_ns.assign(static_cast<std::size_t>(program.stages()), kNoGradient);
  for (const RankResult& rank : result.ranks) {
    for (std::size_t i = 0; i < rank.order.size(); ++i) {
      const TaskId task = program.find(rank.order[i]);
      RRFP_CHECK(task != kNoTask);
      if (!program.accumulates(task)) continue;
      std::int64_t& last = ends.accumulated_ns[static_cast<std::size_t>(rank.order[i].stage)];
      last = std::max(last, rank.end_ns[i]);
    }
  }
  return ends;
}

std::int64_t iteration_end_ns(std::span<const ReplicaEnds> replicas,
                              std::span<const std::int64_t> gradient_sync_ns,
                              std::int64_t optimizer_ns) {
  RRFP_CHECK(!replicas.empty());
  const std::size_t stages = replicas.front().accumulated_ns.size();
  RRFP_CHECK(gradient_sync_ns.empty() || gradient_sync_ns.size() == stages);
  std::int64_t end_ns = 0;
  for (const ReplicaEnds& replica : replicas) end_ns = std::max(end_ns, replica.makespan_ns);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    std::int64_t start_ns = kNoGradient;
    for (const ReplicaEnds& replica : replicas) {
      start_ns = std::max(start_ns, replica.accumulated_ns[stage]);
    }
    if (start_ns == kNoGradient) continue;
    end_ns = std::max(end_ns, start_ns + (gradient_sync_ns.empty() ? 0 : gradient_sync_ns[stage]));
  }
  return end_ns + optimizer_ns;
}

}  // namespace rrfp
