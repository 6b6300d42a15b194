// Runs all policies of a scenario in one drawn world.
//
// Not thread safe: one runner per thread.
#pragma once

#include <vector>

#include "executor/calibration.h"
#include "experiments/sweep.h"
#include "scheduler_core/result.h"
#include "sim/data_parallel.h"
#include "traces/scenario_resolve.h"

namespace rrfp {

class WorldRunner {
 public:
  /// Worlds are as drawn, or as a machine would run them. Both must outlive the
  /// runner.
  explicit WorldRunner(const ScenarioResolver& resolver, const Calibration* calibration = nullptr)
      : resolver_(resolver), calibration_(calibration) {}

  /// One run per policy. The error names the policy.
  Result<std::vector<SweepRun>> run(int iteration) const;

 private:
  Result<SweepRun> run_policy(int policy, std::vector<Case>& replicas) const;
  Result<ReplicaEnds> run_replica(const Case& drawn, SweepRun& run) const;

  const ScenarioResolver& resolver_;
  const Calibration* const calibration_;
};

}  // namespace rrfp
