// The end of an iteration that D replicas of a pipeline share. Each replica is
// a run of its own; they meet where gradients are summed: stage s of all of
// them starts its all-reduce when the last replica has finished the last
// accumulating task of s.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler_core/program.h"
#include "sim/eager_engine.h"
#include "traces/simulation_result.h"

namespace rrfp {

/// What the others need to know of one replica's run.
struct ReplicaEnds {
  /// By stage, the end of the last task that adds into its weight gradient;
  /// kNoGradient where there is no such task.
  std::vector<std::int64_t> accumulated_ns;
  std::int64_t makespan_ns = 0;
};
inline constexpr std::int64_t kNoGradient = -1;

/// REQUIRES: the run has completed; `program` is the one that ran, with its
/// fused backwards.
ReplicaEnds replica_ends(const Program& program, const EagerEngine& engine);
ReplicaEnds replica_ends(const Program& program, const SimulationResult& result);

/// When the last stage of the last replica is done, with its all-reduce (stage
/// s takes gradient_sync_ns[s]; empty: no time) and the optimizer step.
/// REQUIRES: at least one replica, all of the same program.
std::int64_t iteration_end_ns(std::span<const ReplicaEnds> replicas,
                              std::span<const std::int64_t> gradient_sync_ns,
                              std::int64_t optimizer_ns);

}  // namespace rrfp
