// Runs all policies of a scenario in one drawn world.
//
// What the worlds have alike is made once: a schedule, for all worlds and all
// policies of its hint (and for other runners, by the cache); the tables of messages of a world,
// for all its policies that arrange it alike.
//
// Thread safety: immutable after create(); share freely.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "executor/calibration.h"
#include "experiments/schedule_cache.h"
#include "experiments/sweep.h"
#include "scheduler_core/result.h"
#include "sim/data_parallel.h"
#include "traces/prepared_case.h"
#include "traces/scenario_resolve.h"

namespace rrfp {

class WorldRunner {
 public:
  /// Worlds are as drawn, or as a machine would run them: `calibration` must outlive the runner.
  /// The error names the policy whose schedule does not fit the pipeline.
  static Result<WorldRunner> create(ScenarioResolver resolver, ScheduleCache& schedules,
                                    const Calibration* calibration = nullptr);

  /// One run per policy. The error names the policy.
  Result<std::vector<SweepRun>> run(int iteration) const;

 private:
  /// One replica's world, and by arrangement the last case that was made of it.
  struct Replica {
    Case world;
    std::map<Arrangement, std::unique_ptr<const PreparedCase>> prepared;
  };

  WorldRunner(ScenarioResolver resolver, const Calibration* calibration)
      : resolver_(std::move(resolver)), calibration_(calibration) {}
  Result<void> take_schedules(ScheduleCache& schedules);
  Result<SweepRun> run_policy(int policy, std::vector<Replica>& replicas) const;
  Result<ReplicaEnds> run_replica(int policy, Replica& replica, SweepRun& run) const;

  ScenarioResolver resolver_;
  const Calibration* calibration_;
  /// By policy; null where each world needs its own.
  std::vector<std::shared_ptr<const FittedSchedule>> schedules_;
};

}  // namespace rrfp
