#include "experiments/world_runner.h"

#include <algorithm>

#include "sim/eager_engine.h"
#include "sim/simulate.h"
#include "traces/prepared_case.h"

namespace rrfp {

namespace {

// What one replica's run adds to the run of all of them.
void add_memory(SweepRun& run, std::span<const std::int64_t> peaks,
                std::span<const std::int64_t> inboxes) {
  std::int64_t all = 0;
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) {
    const std::int64_t both = peaks[rank] + inboxes[rank];
    all += both;
    if (both > run.peak_bytes) {
      run.peak_bytes = both;
      run.peak_inbox_bytes = inboxes[rank];
    }
  }
  run.all_ranks_bytes = std::max(run.all_ranks_bytes, all);
}

Result<ReplicaEnds> run_eager(const Case& given, SweepRun& run) {
  const Result<std::unique_ptr<const PreparedCase>> prepared = PreparedCase::create(given);
  if (!prepared.ok()) return prepared.error();
  EagerEngine engine(**prepared, {});
  engine.run();
  std::vector<std::int64_t> peaks;
  std::vector<std::int64_t> inboxes;
  for (int rank = 0; rank < given.program.ranks(); ++rank) {
    run.busy_ns += engine.busy_ns(rank);
    peaks.push_back(engine.scheduler(rank).admission().peak_bytes());
    inboxes.push_back(engine.peak_inbox_bytes(rank));
  }
  add_memory(run, peaks, inboxes);
  run.completed = run.completed && engine.completed();
  return replica_ends((*prepared)->program(), engine);
}

Result<ReplicaEnds> run_blocking(const Case& given, SweepRun& run) {
  SimulateOptions detail;
  detail.idle_causes = false;
  const Result<SimulationResult> result = simulate(given, detail);
  if (!result.ok()) return result.error();
  std::vector<std::int64_t> peaks;
  std::vector<std::int64_t> inboxes;
  for (const RankResult& rank : result->ranks) {
    run.busy_ns += rank.busy_ns;
    peaks.push_back(rank.peak_bytes);
    inboxes.push_back(rank.peak_inbox_bytes);
  }
  add_memory(run, peaks, inboxes);
  run.completed = run.completed && result->completed;
  const Result<std::unique_ptr<const PreparedCase>> prepared = PreparedCase::create(given);
  if (!prepared.ok()) return prepared.error();
  return replica_ends((*prepared)->program(), *result);
}

Result<ReplicaEnds> run_one(const Case& given, SweepRun& run) {
  return given.network.mode == NetworkMode::kEager ? run_eager(given, run)
                                                   : run_blocking(given, run);
}

}  // namespace

Result<ReplicaEnds> WorldRunner::run_replica(const Case& drawn, SweepRun& run) const {
  if (calibration_ == nullptr) return run_one(drawn, run);
  const Result<Case> calibrated = with_calibration(drawn, *calibration_);
  if (!calibrated.ok()) return calibrated.error();
  return run_one(*calibrated, run);
}

Result<std::vector<SweepRun>> WorldRunner::run(int iteration) const {
  const Scenario& scenario = resolver_.scenario();
  std::vector<Case> replicas;
  for (int replica = 0; replica < scenario.data_parallel.replicas; ++replica) {
    replicas.push_back(resolver_.draw_world(iteration, replica));
  }
  std::vector<SweepRun> runs;
  for (std::size_t policy = 0; policy < scenario.policies.size(); ++policy) {
    Result<SweepRun> run = run_policy(static_cast<int>(policy), replicas);
    if (!run.ok()) {
      return Error{"policy \"" + scenario.policies[policy].name + "\", iteration " +
                   std::to_string(iteration) + ": " + run.error().message};
    }
    runs.push_back(*run);
  }
  return runs;
}

Result<SweepRun> WorldRunner::run_policy(int policy, std::vector<Case>& replicas) const {
  SweepRun run;
  run.completed = true;
  std::vector<ReplicaEnds> ends;
  for (Case& given : replicas) {
    if (Result<void> applied = resolver_.apply(policy, given); !applied.ok()) {
      return applied.error();
    }
    Result<ReplicaEnds> end = run_replica(given, run);
    if (!end.ok()) return end.error();
    ends.push_back(std::move(end).value());
  }
  const DataParallel& group = resolver_.scenario().data_parallel;
  std::vector<std::int64_t> sync_ns;
  for (int stage = 0; stage < resolver_.program().stages(); ++stage) {
    sync_ns.push_back(group.gradient_sync_ns.at(stage, 0));
  }
  run.iteration_ns = iteration_end_ns(ends, sync_ns, group.optimizer_ns);
  return run;
}

}  // namespace rrfp
