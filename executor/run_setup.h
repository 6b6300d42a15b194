// From a case or a scenario to the plan of a run.
//
// Thread safety: pure functions.
#pragma once

#include <memory>
#include <vector>

#include "executor/plan.h"
#include "traces/case.h"
#include "traces/scenario_resolve.h"

namespace rrfp {

/// A plan with the worlds that it points into; copies share them.
struct PreparedRun {
  std::shared_ptr<RunPlan> plan;
  /// [iteration][replica], before arrangement: what a simulator is given.
  std::vector<std::vector<Case>> cases;
};

/// Every iteration of every replica is the same case. The error is that of
/// PreparedCase::create, or says that the mode cannot be run.
Result<PreparedRun> prepare_run(const Case& input, int iterations, int replicas = 1);

/// Cases as they are: [iteration][replica], all with the same program and lanes.
Result<PreparedRun> prepare_run(std::vector<std::vector<Case>> cases);

/// One policy of a scenario, each iteration with its own draws.
Result<PreparedRun> prepare_run(const ScenarioResolver& resolver, int policy, int iterations);

/// What comes after the last tasks, as a scenario has it.
IterationEnd end_of(const ScenarioResolver& resolver);

}  // namespace rrfp
