// Reads and writes scenario files (rrfp.scenario/1); README.md of this folder
// says what may stand in one. Comments (// and /* */) are allowed.
//
// Invariants
//  1. read_scenario(scenario_to_json(x)) equals x: the resolved file, with all
//     defaults spelled out and schedule files put in, says the same.
//  2. All quantities are at least 0 and at most 2^61 in their base unit.
//
// Thread safety: pure functions but for the files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/json_reader.h"
#include "traces/json_writer.h"
#include "traces/scenario.h"

namespace rrfp {

inline constexpr std::string_view kScenarioSchema = "rrfp.scenario/1";

/// Schedule files that hints name are looked for beside the scenario.
Result<Scenario> read_scenario_file(const std::string& path,
                                    std::size_t limit_bytes = kDefaultFileLimitBytes);

Result<Scenario> read_scenario(const JsonDocument& document);

/// The resolved scenario. Points of a grid are resolved one by one; the grid
/// itself is left out.
JsonValue scenario_to_json(const Scenario& scenario);

Result<void> write_scenario_file(const std::string& path, const Scenario& scenario);

/// A parameter to sweep over: the JSON pointer of a value and what to put there.
struct GridAxis {
  std::string pointer;
  std::vector<JsonValue> values;

  friend bool operator==(const GridAxis&, const GridAxis&) = default;
};

/// One point of the grid: which values it has, and the scenario with them put
/// in and its own grid taken out.
struct GridPoint {
  std::vector<JsonValue> values;  ///< one per axis
  Scenario scenario;
};

/// The axes of the grid that `document`, a scenario, asks for.
Result<std::vector<GridAxis>> read_grid(const JsonDocument& document);

/// How many points these axes span; 1 where there are none.
std::size_t points_of(const std::vector<GridAxis>& axes);

/// Point `number` of the grid that `axes` span, counted as in expand_grid().
/// REQUIRES: `axes` are the document's, and `number` is below points_of(axes).
Result<GridPoint> grid_point(const JsonDocument& document, const std::vector<GridAxis>& axes,
                             std::size_t number);

/// All points, the last axis fastest; one without values where there is no
/// grid. The error names the axis and value that make a scenario wrong.
Result<std::vector<GridPoint>> expand_grid(const JsonDocument& document);

}  // namespace rrfp
