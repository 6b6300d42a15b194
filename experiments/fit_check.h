// How like the recorded job the jobs are that a fitted scenario draws.
//
// Worlds are drawn from the scenario, decomposed like the trace, and simulated
// under its first policy, the recorded order. Nothing is tuned to agree.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "experiments/fit_observations.h"
#include "experiments/variance_components.h"
#include "scheduler_core/result.h"
#include "traces/scenario.h"

namespace rrfp {

inline constexpr std::array<int, 9> kFitPercents = {1, 5, 10, 25, 50, 75, 90, 95, 99};

/// Durations of one kind, each relative to the recorded mean of its stage.
struct KindShape {
  Kind kind = Kind::kForward;
  double deviation = 0;
  std::array<double, kFitPercents.size()> quantiles{};
  /// To the first kind over the microbatches of the same stage, mean over
  /// stages.
  double with_forward = 0;
  /// With the same kind on other stages, mean over pairs; 0 with one stage.
  double across_stages = 0;
  // Shares of the variance, mean over the stages that vary: 1 in all, or 0 where none does.
  std::array<double, kVarianceSources> effects{};
  double microbatch = 0;
  double of_kind = 0;  ///< of microbatches, this kind alone
  double residual = 0;
};

struct KindFit {
  KindShape recorded;
  KindShape drawn;
  double ks_distance = 0;
};

struct FitCheck {
  int iterations = 0;  ///< drawn
  std::vector<KindFit> kinds;
  std::vector<std::int64_t> simulated_ns;  ///< by drawn iteration
};

/// Draws and simulates so many iterations, of which all threads call
/// `on_iteration` after each. The error is that of a run which broke or blocked.
Result<FitCheck> check_fit(const FitObservations& observed, const VarianceComponents& components,
                           const Scenario& scenario, int iterations, int threads,
                           const std::function<void()>& on_iteration);

}  // namespace rrfp
