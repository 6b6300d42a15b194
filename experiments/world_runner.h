// Runs all policies of a scenario in one drawn world.
//
// Not thread safe: one runner per thread.
#pragma once

#include <vector>

#include "experiments/sweep.h"
#include "scheduler_core/result.h"
#include "traces/scenario_resolve.h"

namespace rrfp {

class WorldRunner {
 public:
  /// `resolver` must outlive the runner.
  explicit WorldRunner(const ScenarioResolver& resolver) : resolver_(resolver) {}

  /// One run per policy. The error names the policy.
  Result<std::vector<SweepRun>> run(int iteration) const;

 private:
  Result<SweepRun> run_policy(int policy, std::vector<Case>& replicas) const;

  const ScenarioResolver& resolver_;
};

}  // namespace rrfp
