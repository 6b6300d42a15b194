// From what was observed of a job and the components of its variance to a
// scenario that draws jobs like it.
//
// Thread safety: pure function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/fit_observations.h"
#include "experiments/variance_components.h"
#include "traces/scenario.h"

namespace rrfp {

struct FittedScenario {
  Scenario scenario;
  /// What the trace does not tell and the scenario leaves out or assumes, a
  /// sentence each.
  std::vector<std::string> unknown;
};

/// Its first policy is the recorded order, fixed, and the baseline.
///  - durations: the mean of each kind and stage
///  - microbatches: one length each, known beforehand, shared by all stages;
///    costs are a constant plus a multiple of it, by kind and stage; another
///    for what one kind has in common besides
///  - residual, replicas, devices and iterations: factors of mean 1 from the
///    quantiles of what was observed; devices and replicas that are always
///    slower or faster than others, by 0.5 % or more (of few: 0.1 %), keep
///    their own factor
///  - latency: the median transfer; each link's own quantiles around it
///  - end of an iteration: mean times
/// Where `split_fraction` is given, W is taken to be this share of each backward,
/// and policies that need a split backward join the others; the recorded order
/// keeps its backwards whole. REQUIRES: it is above 0 and below 1, and the
/// program's backward is whole.
FittedScenario fit_scenario(const std::string& name, const FitObservations& observed,
                            const VarianceComponents& components,
                            std::optional<double> split_fraction = std::nullopt);

}  // namespace rrfp
