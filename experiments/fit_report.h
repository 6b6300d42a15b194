// What a fit found and how good it is, as text for people and as JSON.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "experiments/fit_check.h"
#include "experiments/fit_observations.h"
#include "experiments/fit_scenario.h"
#include "experiments/variance_components.h"
#include "traces/json_value.h"
#include "traces/native_trace.h"

namespace rrfp {

struct FitReport {
  std::string file;
  FitObservations observed;
  VarianceComponents components;
  FittedScenario fitted;
  FitCheck check;
};

std::string describe_fit(const TraceHeader& header, const FitReport& report);

/// rrfp.fit/1, with the scenario.
JsonValue fit_to_json(const FitReport& report);

/// The scenario file, opened by comments on what it was made from and what the
/// trace did not tell.
std::string fitted_scenario_text(const FitReport& report);

}  // namespace rrfp
