// Measures what this machine adds to the tasks and messages of an input, by
// running it: the calibration that predictions of the same job use.
#pragma once

#include "executor/calibration.h"
#include "executor/job.h"
#include "experiments/run_input.h"

namespace rrfp {

inline constexpr int kCalibrationIterations = 5;

/// What is there before the processes of a job meet.
struct CalibrationPlan {
  std::string job;       ///< the name of the case or scenario
  PreparedRun prepared;  ///< of kCalibrationIterations
  DeviceChoice device;

  const Grid& grid() const { return prepared.plan->grid; }
  /// Of the first iteration, as the file has it.
  const Case& world() const { return prepared.cases[0][0]; }
};

Result<CalibrationPlan> plan_calibration(const RunInput& input, int policy, const Options& options);

/// What comes back is of use where the job speaks. The error is of a run that
/// did not complete. `what`: see RunProgress.
Result<Calibration> run_calibration(Job& job, CalibrationPlan& plan, const std::string& what,
                                    RunOutcome& outcome, Terminal& terminal);

}  // namespace rrfp
