#include "experiments/world_runner.h"

#include <algorithm>

#include "sim/eager_engine.h"
#include "sim/simulate.h"

namespace rrfp {

namespace {

// A schedule that is kept has at most so many tasks: each takes some 12 MB.
constexpr int kMostKeptTasks = 1 << 20;

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

ReplicaEnds run_eager(const PreparedCase& prepared, SweepRun& run) {
  EagerEngine engine(prepared, {});
  engine.run();
  std::vector<std::int64_t> peaks;
  std::vector<std::int64_t> inboxes;
  for (int rank = 0; rank < prepared.program().ranks(); ++rank) {
    run.busy_ns += engine.busy_ns(rank);
    peaks.push_back(engine.scheduler(rank).admission().peak_bytes());
    inboxes.push_back(engine.peak_inbox_bytes(rank));
  }
  add_memory(run, peaks, inboxes);
  run.completed = run.completed && engine.completed();
  return replica_ends(prepared.program(), engine);
}

Result<ReplicaEnds> run_blocking(const PreparedCase& prepared, SweepRun& run) {
  SimulateOptions detail;
  detail.idle_causes = false;
  const Result<SimulationResult> result = simulate(prepared, detail);
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
  return replica_ends(prepared.program(), *result);
}

}  // namespace

Result<WorldRunner> WorldRunner::create(ScenarioResolver resolver, ScheduleCache& schedules,
                                        const Calibration* calibration) {
  WorldRunner runner(std::move(resolver), calibration);
  if (Result<void> taken = runner.take_schedules(schedules); !taken.ok()) return taken.error();
  return runner;
}

Result<void> WorldRunner::take_schedules(ScheduleCache& schedules) {
  const std::vector<ScenarioPolicy>& policies = resolver_.scenario().policies;
  const Program& program = resolver_.program();
  schedules_.resize(policies.size());
  if (program.task_ids() > kMostKeptTasks) return {};
  for (std::size_t policy = 0; policy < policies.size(); ++policy) {
    const HintSpec& hint = policies[policy].policy.hint;
    if (looks_at_times(hint)) continue;
    Result<std::shared_ptr<const FittedSchedule>> taken = schedules.get(hint, program);
    if (!taken.ok()) {
      return Error{"policy \"" + policies[policy].name + "\": " + taken.error().message};
    }
    schedules_[policy] = *std::move(taken);
  }
  return {};
}

Result<std::vector<SweepRun>> WorldRunner::run(int iteration) const {
  const Scenario& scenario = resolver_.scenario();
  std::vector<Replica> replicas;
  for (int replica = 0; replica < scenario.data_parallel.replicas; ++replica) {
    replicas.push_back({resolver_.draw_world(iteration, replica), {}});
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

Result<SweepRun> WorldRunner::run_policy(int policy, std::vector<Replica>& replicas) const {
  SweepRun run;
  run.completed = true;
  std::vector<ReplicaEnds> ends;
  for (Replica& replica : replicas) {
    if (Result<void> applied = resolver_.apply(policy, replica.world); !applied.ok()) {
      return applied.error();
    }
    Result<ReplicaEnds> end = run_replica(policy, replica, run);
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

// REQUIRES: the policy was applied to the replica's world.
Result<ReplicaEnds> WorldRunner::run_replica(int policy, Replica& replica, SweepRun& run) const {
  std::unique_ptr<const PreparedCase>& last = replica.prepared[replica.world.policy.arrangement];
  const SharedParts shared = {schedules_[static_cast<std::size_t>(policy)], last.get()};
  Result<std::unique_ptr<const PreparedCase>> prepared = [&] {
    if (calibration_ == nullptr) return PreparedCase::create(replica.world, shared);
    const Result<Case> calibrated = with_calibration(replica.world, *calibration_);
    if (!calibrated.ok()) return Result<std::unique_ptr<const PreparedCase>>(calibrated.error());
    return PreparedCase::create(*calibrated, shared);
  }();
  if (!prepared.ok()) return prepared.error();
  last = *std::move(prepared);
  return replica.world.network.mode == NetworkMode::kEager ? run_eager(*last, run)
                                                           : run_blocking(*last, run);
}

}  // namespace rrfp
