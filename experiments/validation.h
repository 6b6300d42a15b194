// Can the simulator be trusted? Two figures from the same runs.
//   model error  the simulator, fed with a run's own task and message times,
//                against the run
//   prediction   the simulator, fed with the scenario and a calibration,
//                against the run
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/calibration.h"
#include "executor/run_setup.h"
#include "scheduler_core/result.h"
#include "traces/json_value.h"

namespace rrfp {

/// An iteration in which a thread was held up for longer says nothing about
/// the model.
inline constexpr std::int64_t kMostStallNs = 2'000'000;

/// One iteration of one replica, without a stall.
struct ValidatedIteration {
  std::int64_t measured_ns = 0;
  std::int64_t simulated_ns = 0;  ///< from its own times
  std::int64_t predicted_ns = 0;  ///< from the scenario
};

struct ValidatedPolicy {
  std::string name;
  std::vector<ValidatedIteration> iterations;
  int dropped = 0;                          ///< iterations with a stall
  std::vector<ValidatedIteration> stalled;  ///< their replicas; part of no figure but the next

  std::int64_t median_measured_ns() const;
  std::int64_t median_predicted_ns() const;
  /// |simulated / measured - 1| of the median iteration.
  double model_error() const;
  /// The same of the dropped ones: a stall is part of a run's own times.
  double model_error_of_dropped() const;
  /// predicted / measured - 1, of the medians.
  double prediction_error() const;
  /// About 95% of intervals so made hold the median of what is measured.
  std::int64_t least_measured_ns() const;
  std::int64_t most_measured_ns() const;
};

/// The error is the simulator's.
Result<void> add_iteration(const PreparedRun& run, const IterationRecord& record,
                           const Calibration& calibration, ValidatedPolicy& to);

/// Pairs of policies that measurement tells apart (their intervals do not
/// overlap), and how many of them prediction orders the other way.
struct RankingAgreement {
  int pairs = 0;
  int reversed = 0;
};
RankingAgreement compare_rankings(const std::vector<ValidatedPolicy>& policies);

/// What was validated, and where.
struct Validation {
  std::string name;
  std::string transport;
  Calibration calibration;
  std::vector<ValidatedPolicy> policies;
  std::int64_t decisions = 0;  ///< made again from the calls that led to them, identically
};

/// A table, and what follows from it.
std::string describe_validation(const Validation& validation);
/// rrfp.validation/1: the figures of every policy, and every iteration.
JsonValue validation_to_json(const Validation& validation);

}  // namespace rrfp
