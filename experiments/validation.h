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

/// An iteration in which a thread was held up for longer, and for longer than a
/// fiftieth of it, says nothing about the model.
inline constexpr std::int64_t kMostStallNs = 2'000'000;
inline constexpr int kMostStallPart = 50;
bool is_stalled(std::int64_t stall_ns, std::int64_t iteration_ns);

/// One iteration of one replica, without a stall.
struct ValidatedIteration {
  std::int64_t measured_ns = 0;
  std::int64_t simulated_ns = 0;  ///< from its own times
  std::int64_t predicted_ns = 0;  ///< from the scenario
};

struct ValidatedPolicy {
  std::string name;
  std::vector<ValidatedIteration> iterations;
  int kept = 0;                             ///< iterations without a stall
  int dropped = 0;                          ///< and with one
  std::vector<ValidatedIteration> stalled;  ///< their replicas; part of no figure but the next

  /// Fewer than a quarter were kept: no figures, but a choice of quiet moments.
  bool too_few() const { return 4 * kept < kept + dropped || kept == 0; }
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
  std::int64_t mean_task_ns = 0;  ///< of the world
  std::string foreign;            ///< in what the calibration is of another job; empty: of this one
  std::int64_t decisions = 0;     ///< made again from the calls that led to them, identically
};

/// In what the job differs from the one that `calibration` was made of, for
/// people; empty: in nothing that is known.
std::string what_is_foreign(const Calibration& calibration, const Calibration& of_job);

/// Whether there are figures: no policy has too few iterations.
bool has_figures(const Validation& validation);

/// A table, and what follows from it.
std::string describe_validation(const Validation& validation);
/// rrfp.validation/1: the figures of every policy, and every iteration.
JsonValue validation_to_json(const Validation& validation);

}  // namespace rrfp
