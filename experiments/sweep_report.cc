#include "experiments/sweep_report.h"

#include <algorithm>

#include "experiments/display_units.h"
#include "experiments/text_list.h"
#include "experiments/text_table.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

// Where an activation is one byte, bytes are activations.
DisplayUnit memory_unit(const Scenario& scenario, std::int64_t most) {
  const std::vector<std::int64_t>& values = scenario.memory.activation_bytes.values;
  const bool counted =
      std::all_of(values.begin(), values.end(), [](std::int64_t bytes) { return bytes == 1; });
  return counted ? DisplayUnit{"activations", 1} : byte_unit(most);
}

std::string note_of(const PolicySummary& summary, const Scenario& scenario) {
  if (summary.name == scenario.policies[static_cast<std::size_t>(scenario.baseline)].name) {
    return "baseline";
  }
  if (summary.against_baseline == MemoryAgainstBaseline::kEqual) return "";
  return std::string(word(summary.against_baseline)) + " memory than baseline";
}

std::string interval_text(const std::optional<Interval>& interval) {
  if (!interval) return "-";
  return fixed(interval->low, 3) + "-" + fixed(interval->high, 3);
}

std::string table_of(const SweepPoint& point, const std::vector<PolicySummary>& summaries) {
  std::int64_t longest_ns = 0;
  std::int64_t most_bytes = 0;
  for (const PolicySummary& summary : summaries) {
    longest_ns = std::max(longest_ns, summary.p95_ns);
    most_bytes = std::max(most_bytes, summary.memory.bytes);
  }
  const DisplayUnit time = time_unit(longest_ns);
  const DisplayUnit bytes = memory_unit(point.scenario, most_bytes);
  const std::string in_time = " [" + std::string(time.name) + "]";
  const std::string in_bytes = " [" + std::string(bytes.name) + "]";
  TextTable table({"policy", "mean" + in_time, "p50", "p95", "idle", "speed-up", "95 % interval",
                   "over fixed at its memory", "peak memory" + in_bytes, "of it inbox", "all ranks",
                   "note"});
  table.align_left(11);
  for (const PolicySummary& summary : summaries) {
    const PeakMemory& memory = summary.memory;
    const bool blocked = summary.blocked > 0;
    const auto rounded_mean = static_cast<std::int64_t>(summary.mean_ns + 0.5);
    table.add({summary.name, blocked ? "blocked" : in_unit(rounded_mean, time),
               blocked ? "-" : in_unit(summary.p50_ns, time),
               blocked ? "-" : in_unit(summary.p95_ns, time),
               blocked ? "-" : fixed(100 * summary.idle_share, 1) + " %",
               summary.speedup ? fixed(*summary.speedup, 3) : "-",
               interval_text(summary.speedup_interval),
               summary.speedup_at_memory
                   ? fixed(*summary.speedup_at_memory, 3) + " " + summary.fixed_at_memory
                   : "-",
               in_unit(memory.bytes, bytes), in_unit(memory.inbox_bytes, bytes),
               in_unit(memory.all_ranks_bytes, bytes),
               blocked ? std::to_string(summary.blocked) + " of " + std::to_string(summary.runs) +
                             " runs blocked"
                       : note_of(summary, point.scenario)});
  }
  return table.text();
}

}  // namespace

std::string describe_point(const Sweep& sweep, std::size_t point) {
  std::string text;
  for (std::size_t axis = 0; axis < sweep.axes.size(); ++axis) {
    add_to_list(text, sweep.axes[axis].pointer + " = " +
                          to_text(sweep.points[point].values[axis], JsonLayout::kCompact));
  }
  return text;
}

std::string describe_sweep(const Sweep& sweep,
                           const std::vector<std::vector<PolicySummary>>& summaries) {
  std::string text;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    const std::string where = describe_point(sweep, i);
    std::string head = point.scenario.name;
    if (!where.empty()) head += (head.empty() ? "" : ": ") + where;
    text += (i == 0 ? "" : "\n") + head + (head.empty() ? "" : ", ") +
            std::to_string(point.iterations_done()) + " of " +
            std::to_string(point.scenario.iterations) + " iterations\n";
    if (!summaries[i].empty()) text += table_of(point, summaries[i]);
  }
  return text;
}

}  // namespace rrfp
