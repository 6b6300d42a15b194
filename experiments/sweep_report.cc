#include "experiments/sweep_report.h"

#include <algorithm>

#include "experiments/display_units.h"
#include "experiments/preset_report.h"
#include "experiments/result_report.h"
#include "experiments/scenario_notes.h"
#include "experiments/scenario_point.h"
#include "experiments/text_list.h"
#include "experiments/text_table.h"
#include "traces/json_writer.h"
#include "traces/scenario_resolve.h"
#include "traces/transfer.h"

namespace rrfp {

namespace {

std::string note_of(const PolicySummary& summary, const Scenario& scenario) {
  if (summary.name == scenario.policies[static_cast<std::size_t>(scenario.baseline)].name) {
    return "baseline";
  }
  std::string note;
  if (summary.misses_latency_draws) add_to_list(note, "meets only the mean latency");
  if (summary.against_baseline != MemoryAgainstBaseline::kEqual) {
    add_to_list(note, std::string(word(summary.against_baseline)) + " memory than baseline");
  }
  return note;
}

std::string interval_text(const std::optional<Interval>& interval) {
  if (!interval) return "-";
  return fixed(interval->low, 3) + "-" + fixed(interval->high, 3);
}

std::string table_of(const SweepPoint& point, const std::vector<PolicySummary>& summaries) {
  std::int64_t longest_ns = 0;
  for (const PolicySummary& summary : summaries) {
    longest_ns = std::max(longest_ns, summary.p95_ns);
  }
  const DisplayUnit time = time_unit(longest_ns);
  // The unit in which schedules are told apart.
  const auto activation_bytes = static_cast<double>(largest_activation_bytes(point.scenario));
  const auto activations = [activation_bytes](std::int64_t bytes) {
    return fixed(static_cast<double>(bytes) / activation_bytes, 2);
  };
  const std::string in_time = " [" + std::string(time.name) + "]";
  TextTable table({"policy", "mean" + in_time, "p50", "p95", "idle", "speed-up", "95 % interval",
                   "over fixed at its memory", "peak memory [activations]", "of it inbox",
                   "all ranks", "note"});
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
               activations(memory.bytes), activations(memory.inbox_bytes),
               activations(memory.all_ranks_bytes),
               blocked ? std::to_string(summary.blocked) + " of " + std::to_string(summary.runs) +
                             " runs blocked: `rrfp simulate --policy` says why"
                       : note_of(summary, point.scenario)});
  }
  return table.text();
}

// Where a launch-queue policy got its message_ns, if not from the scenario.
std::string notes_of(const Scenario& scenario) {
  const Result<ScenarioResolver> resolver = ScenarioResolver::create(scenario);
  if (!resolver.ok()) return "";
  for (int policy = 0; policy < static_cast<int>(scenario.policies.size()); ++policy) {
    if (!resolver->derives_message_ns(policy)) continue;
    return message_note(mean_transfer_ns(resolver->draw_world(0, 0)));
  }
  return "";
}

}  // namespace

std::string describe_sweep(const Sweep& sweep,
                           const std::vector<std::vector<PolicySummary>>& summaries) {
  std::string text;
  std::string last_notes;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    std::string head = point.scenario.name;
    if (!sweep.axes.empty()) {
      add_to_list(head,
                  "point " + std::to_string(i) + ": " + describe_values(sweep.axes, point.values));
    }
    text += (i == 0 ? "" : "\n") + head + (head.empty() ? "" : ", ") +
            std::to_string(point.iterations_done()) + " of " +
            counted(point.scenario.iterations, "iteration") + "\n";
    if (!summaries[i].empty()) text += table_of(point, summaries[i]);
    text += notes_of(point.scenario) + preset_note(point.scenario);
    // Most points have the same.
    const std::string notes = activation_note(point.scenario) + iteration_note(point.scenario);
    if (notes != last_notes) text += notes;
    last_notes = notes;
  }
  return text;
}

}  // namespace rrfp
