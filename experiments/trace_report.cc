#include "experiments/trace_report.h"

#include <algorithm>
#include <cmath>

#include "experiments/display_units.h"
#include "experiments/text_list.h"
#include "experiments/text_table.h"

namespace rrfp {

namespace {

std::string rounded(double ns, const DisplayUnit& unit) {
  return in_unit(std::llround(std::max(0.0, ns)), unit);
}

/// One row per kind of record, in one unit.
class LengthTable {
 public:
  void add(const std::string& label, const LengthSummary& lengths) {
    rows_.emplace_back(label, &lengths);
    longest_ns_ = std::max(longest_ns_, lengths.percentile_ns(95));
  }

  std::string text() const {
    const DisplayUnit unit = time_unit(longest_ns_);
    const std::string in_time = " [" + std::string(unit.name) + "]";
    TextTable table({"record", "count", "mean" + in_time, "median", "p95"});
    for (const auto& [label, lengths] : rows_) {
      table.add({label, std::to_string(lengths->count()), rounded(lengths->mean_ns(), unit),
                 in_unit(lengths->percentile_ns(50), unit),
                 in_unit(lengths->percentile_ns(95), unit)});
    }
    return rows_.empty() ? "" : table.text();
  }

 private:
  std::vector<std::pair<std::string, const LengthSummary*>> rows_;
  std::int64_t longest_ns_ = 0;
};

std::string describe_iterations(const TraceSummary& summary) {
  std::string text = counted(summary.iterations, "iteration");
  if (summary.iterations == 0) return text + "\n";
  text += ", " + std::to_string(summary.first_iteration) + " to " +
          std::to_string(summary.last_iteration);
  const std::int64_t missing =
      std::int64_t{summary.last_iteration} - summary.first_iteration + 1 - summary.iterations;
  if (missing > 0) text += ", " + std::to_string(missing) + " between them not recorded";
  if (!summary.ascending) text += ", not in ascending order";
  return text + "; mean " + time_with_unit(std::llround(summary.iteration.mean_ns())) +
         ", median " + time_with_unit(summary.iteration.percentile_ns(50)) + ", p95 " +
         time_with_unit(summary.iteration.percentile_ns(95)) + "\n";
}

std::string describe_clocks(const TraceHeader& header) {
  if (header.clocks.empty()) return "clocks: one for all\n";
  TextTable table({"clock of process", "offset [ns]", "drift [ppb]", "error [ns]"});
  for (const ProcessClock& clock : header.clocks) {
    table.add({std::to_string(clock.process), std::to_string(clock.offset_ns),
               std::to_string(clock.drift_ppb), std::to_string(clock.error_ns)});
  }
  return table.text();
}

std::string describe_ranks(const TraceSummary& summary) {
  std::int64_t longest_ns = 0;
  for (const RankSummary& rank : summary.ranks) {
    longest_ns = std::max(longest_ns, rank.longest_gap_ns);
  }
  const DisplayUnit unit = time_unit(longest_ns);
  TextTable table(
      {"rank", "in tasks", "in spans", "gaps", "longest gap [" + std::string(unit.name) + "]"});
  for (std::size_t i = 0; i < summary.ranks.size(); ++i) {
    const RankSummary& rank = summary.ranks[i];
    const std::int64_t whole_ns = rank.tasks_ns + rank.spans_ns + rank.gaps_ns;
    table.add({std::to_string(i), percent(rank.tasks_ns, whole_ns),
               percent(rank.spans_ns, whole_ns), percent(rank.gaps_ns, whole_ns),
               in_unit(rank.longest_gap_ns, unit)});
  }
  return table.text();
}

std::string listed(const DroppedRecords& records) {
  std::string text;
  for (const DroppedRecords::Reason& reason : records.reasons) {
    text += "  " + std::to_string(reason.count) + "  " + reason.reason +
            " (first: " + reason.first + ")\n";
  }
  return text;
}

}  // namespace

std::string describe_shape(const TraceHeader& header) {
  const Program& program = header.program;
  std::string text = header.name.empty() ? "" : header.name + ": ";
  text += counted(program.ranks(), "rank") + ", " + counted(program.stages(), "stage") + ", " +
          counted(program.microbatches(), "microbatch") + ", " +
          counted(header.replicas, "replica");
  if (header.lanes > 1) text += ", " + std::to_string(header.lanes) + " lanes a rank";
  if (program.split_backward()) text += ", split backward";
  return text + "\n";
}

std::string describe_summary(const TraceHeader& header, const TraceSummary& summary) {
  std::string text = describe_shape(header) + describe_iterations(summary);
  for (const auto& [what, version] : header.versions) text += what + " " + version + "\n";
  text += counted(summary.tasks, "task") + ", " + counted(summary.messages, "message") + ", " +
          counted(summary.spans, "span") + "\n";
  if (summary.tasks == 0 && summary.spans > 0) {
    text += "no tasks, only sums per iteration: it cannot be replayed\n";
  }
  LengthTable lengths;
  for (const auto& [kind, of_kind] : summary.task_kinds) lengths.add(kind, of_kind);
  for (const auto& [kind, of_kind] : summary.transfers) lengths.add(kind + " transfer", of_kind);
  for (const auto& [name, of_name] : summary.span_names) {
    lengths.add(name + (summary.collectives.contains(name) ? " (collective)" : ""), of_name);
  }
  text += "\n" + lengths.text() + "\n";
  if (summary.tasks > 0) text += describe_ranks(summary) + "\n";
  text += describe_clocks(header);
  if (summary.oddities.total() > 0) {
    text += "odd, and kept:\n" + listed(summary.oddities);
  }
  if (summary.longest_overlap_ns > 0) {
    text += "  the longest overlap is " + time_with_unit(summary.longest_overlap_ns) + "\n";
  }
  return text;
}

std::string describe_dropped(const DroppedRecords& dropped, const std::string& of_what) {
  if (dropped.total() == 0) return "";
  return "dropped " + counted(dropped.total(), of_what) + ":\n" + listed(dropped);
}

std::string describe_import(const StragglerReport& report) {
  std::int64_t used = 0;
  TextTable table({"optype", "rows", "used", "launch delay, mean [us]"});
  for (const StragglerReport::Type& type : report.types) {
    if (type.rows == 0) continue;
    used += type.used;
    const bool delayed = type.launch_delay_ns > 0 && type.used > 0;
    table.add({type.name, std::to_string(type.rows), std::to_string(type.used),
               delayed ? fixed(static_cast<double>(type.launch_delay_ns) /
                                   static_cast<double>(type.used) / 1e3,
                               1)
                       : "-"});
  }
  std::string text =
      "used " + std::to_string(used) + " of " + counted(report.rows, "row") + "\n" + table.text();
  if (report.early_ends > 0) {
    text += counted(report.early_ends, "end") +
            " of a message lies before both ends had started: its transfer counts as 0\n";
  }
  return text + describe_dropped(report.dropped, "row");
}

std::string describe_spans(const TraceSummary& summary) {
  LengthTable lengths;
  for (const auto& [name, of_name] : summary.span_names) lengths.add(name, of_name);
  return lengths.text();
}

}  // namespace rrfp
