// Which point of a scenario's grid a command takes that runs one scenario, and
// what it says of that. Points are counted as `rrfp sweep` counts them: in its
// tables, in the column "point" of its CSV files, in scenario-N.json.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>

#include "experiments/options.h"
#include "scheduler_core/result.h"
#include "traces/scenario_file.h"

namespace rrfp {

inline constexpr OptionRow kPointRow = {
    "point", "N",
    "of a scenario with a grid: its point N, as `rrfp sweep` counts them (default: the file's own "
    "values)"};

struct ScenarioAtPoint {
  Scenario scenario;
  std::string note;  ///< a line that says which values these are; empty where there is no grid
};

/// The scenario at the point that --point asks for, or with the values that the
/// file itself has. The error says how many points there are.
Result<ScenarioAtPoint> read_scenario_at(const JsonDocument& document, const Options& options);

/// "/network/latency_us = 10, /variability = []"; empty where there are no axes.
std::string describe_values(std::span<const GridAxis> axes, std::span<const JsonValue> values);

}  // namespace rrfp
