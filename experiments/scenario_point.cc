#include "experiments/scenario_point.h"

#include <limits>
#include <utility>

#include "experiments/text_list.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

std::string counted_points(std::size_t points) {
  return points == 1 ? "1 point, 0"
                     : std::to_string(points) + " points, 0 to " + std::to_string(points - 1);
}

}  // namespace

std::string describe_values(std::span<const GridAxis> axes, std::span<const JsonValue> values) {
  std::string text;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    add_to_list(text, axes[axis].pointer + " = " + to_text(values[axis], JsonLayout::kCompact));
  }
  return text;
}

Result<ScenarioAtPoint> read_scenario_at(const JsonDocument& document, const Options& options) {
  const Result<std::optional<std::int64_t>> number =
      options.integer(kPointRow.name, 0, std::numeric_limits<int>::max());
  if (!number.ok()) return number.error();
  const Result<std::vector<GridAxis>> axes = read_grid(document);
  if (!axes.ok()) return axes.error();
  const std::size_t points = points_of(*axes);
  if (!*number) {
    Result<Scenario> scenario = read_scenario(document);
    if (!scenario.ok()) return scenario.error();
    if (axes->empty()) return ScenarioAtPoint{*std::move(scenario), ""};
    return ScenarioAtPoint{*std::move(scenario),
                           "note: the file's own values, not those of its grid, which has " +
                               counted_points(points) + ": --point N takes one\n"};
  }
  const auto wanted = static_cast<std::size_t>(**number);
  if (wanted >= points) {
    return Error{"--point: found " + std::to_string(wanted) + "; the grid of " + document.file +
                 " has " + counted_points(points) + ", as `rrfp sweep` counts them"};
  }
  Result<GridPoint> point = grid_point(document, *axes, wanted);
  if (!point.ok()) return point.error();
  std::string note;
  if (!axes->empty()) {
    note = "point " + std::to_string(wanted) + " of " + std::to_string(points) + ": " +
           describe_values(*axes, point->values) + "\n";
  }
  return ScenarioAtPoint{std::move(point->scenario), std::move(note)};
}

}  // namespace rrfp
