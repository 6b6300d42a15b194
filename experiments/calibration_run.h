// Measures what this machine adds to the tasks and messages of an input, by
// running it: the calibration that predictions of the same job use.
#pragma once

#include "executor/calibration.h"
#include "executor/job.h"
#include "experiments/run_input.h"

namespace rrfp {

inline constexpr int kCalibrationIterations = 5;

/// Whether run_calibration() can begin, and of how many workers it is.
Result<Grid> check_calibration(const RunInput& input, int policy, const Options& options);

/// Runs `policy` for kCalibrationIterations. What comes back is of use where
/// the job speaks. The error is of a run that did not complete.
Result<Calibration> run_calibration(Job& job, const RunInput& input, int policy,
                                    const Options& options, RunOutcome& outcome);

}  // namespace rrfp
