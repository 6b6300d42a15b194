#include "experiments/replay_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "experiments/display_units.h"
#include "experiments/text_list.h"
#include "experiments/text_table.h"
#include "experiments/trace_report.h"
#include "traces/case_words.h"

namespace rrfp {

namespace {

/// Of many replicas only the worst are shown.
constexpr std::size_t kShownReplicas = 8;

struct Means {
  std::int64_t measured_ns = 0;
  std::int64_t replay_ns = 0;
  std::int64_t ideal_ns = 0;
};

Means means_of(const ReplayAnalysis& analysis) {
  double measured = 0;
  double replay = 0;
  double ideal = 0;
  for (const StepAnalysis& step : analysis.steps) {
    measured += static_cast<double>(step.measured_ns);
    replay += static_cast<double>(step.replay_ns);
    ideal += static_cast<double>(step.ideal_ns);
  }
  const auto steps = static_cast<double>(analysis.steps.size());
  return {std::llround(measured / steps), std::llround(replay / steps),
          std::llround(ideal / steps)};
}

std::string describe_groups(const ReplayAnalysis& analysis, int stages, int replicas) {
  std::string text = "the ideal with one group's recorded times put back, over the ideal:\n";
  TextTable stage_table({"stage", "slowdown"});
  for (int stage = 0; stage < stages; ++stage) {
    stage_table.add({std::to_string(stage), fixed(analysis.stage_slowdown(stage), 4)});
  }
  TextTable type_table({"type", "slowdown"});
  for (std::size_t group = 0; group < analysis.type_groups.size(); ++group) {
    if (analysis.steps.front().by_type_ns.empty()) break;
    const double slowdown = analysis.type_slowdown(static_cast<int>(group));
    const bool task = group < ReplayTypes::kMessages;
    if (task && analysis.operations[group] == 0) continue;
    type_table.add({analysis.type_groups[group], fixed(slowdown, 4)});
  }
  std::vector<std::pair<double, int>> by_replica;
  for (int replica = 0; replica < replicas; ++replica) {
    by_replica.emplace_back(analysis.replica_slowdown(replica), replica);
  }
  std::stable_sort(by_replica.begin(), by_replica.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  TextTable replica_table({"replica", "slowdown"});
  for (std::size_t i = 0; i < std::min(by_replica.size(), kShownReplicas); ++i) {
    replica_table.add({std::to_string(by_replica[i].second), fixed(by_replica[i].first, 4)});
  }
  text += stage_table.text() + "\n" + type_table.text() + "\n" + replica_table.text();
  if (by_replica.size() > kShownReplicas) {
    text += "and " + std::to_string(by_replica.size() - kShownReplicas) +
            " replicas below, the least at " + fixed(by_replica.back().first, 4) +
            " (--json tells all)\n";
  }
  return text;
}

std::string memory_note(const WhatIfRow& row, const WhatIfRow& baseline) {
  const auto against = [](std::int64_t own, std::int64_t other, const std::string& what) {
    if (own == other) return std::string();
    return (own > other ? "more " : "less ") + what;
  };
  const bool equal_all = row.peak_activations == baseline.peak_activations;
  std::string note;
  for (const std::string& part :
       {equal_all ? against(row.all_ranks, baseline.all_ranks, "activations on all ranks")
                  : against(row.peak_activations, baseline.peak_activations, "activations"),
        against(row.peak_inbox, baseline.peak_inbox, "inbox")}) {
    if (!part.empty()) add_to_list(note, part);
  }
  return note.empty() ? "" : note + " than baseline";
}

std::string note_of(const WhatIfRow& row, const WhatIf& what_if, const WhatIfOptions& options) {
  if (!row.error.empty()) return row.error;
  std::string note;
  if (&row == &what_if.rows.front()) note = "baseline";
  if (row.blocked > 0) {
    note = "blocked in " + std::to_string(row.blocked) + " of " +
           counted(static_cast<std::int64_t>(row.step_ns.size()), "iteration") +
           ": its order and the budget do not fit, raise --budget";
  } else if (&row != &what_if.rows.front()) {
    note = memory_note(row, what_if.rows.front());
  }
  if (row.split_assumed)
    add_to_list(note, "assumes W = " + fixed(*options.split_fraction, 2) + " B");
  return note;
}

std::string budget_text(const WhatIfBudget& budget) {
  switch (budget.kind) {
    case WhatIfBudget::Kind::kNone:
      return "none";
    case WhatIfBudget::Kind::kRecorded:
      return "what the recorded order holds, rank by rank";
    case WhatIfBudget::Kind::kEven:
      return "on each rank what the recorded order holds on its fullest";
    case WhatIfBudget::Kind::kSchedule:
      return "what " + budget.schedule + " holds, rank by rank";
    case WhatIfBudget::Kind::kNumbers:
      break;
  }
  std::string list;
  for (const std::int64_t number : budget.numbers) add_to_list(list, std::to_string(number));
  return list + " activations per rank";
}

JsonValue decimal(double value) { return JsonValue(Decimal{fixed(value, 6)}); }

double mean_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

JsonValue bound_to_json(const std::vector<std::int64_t>& bound_ns, const WhatIfRow& first) {
  JsonObject bound;
  bound.push_back({"mean_ns", JsonValue(std::int64_t{std::llround(mean_of(bound_ns))})});
  if (first.ran()) bound.push_back({"speedup", decimal(first.mean_ns() / mean_of(bound_ns))});
  return JsonValue(std::move(bound));
}

JsonValue integers(const std::vector<std::int64_t>& values) {
  JsonArray array;
  for (const std::int64_t value : values) array.emplace_back(value);
  return JsonValue(std::move(array));
}

JsonValue dropped_to_json(const DroppedRecords& dropped) {
  JsonArray array;
  for (const DroppedRecords::Reason& reason : dropped.reasons) {
    JsonObject one;
    one.push_back({"reason", JsonValue(reason.reason)});
    one.push_back({"count", JsonValue(reason.count)});
    one.push_back({"first", JsonValue(reason.first)});
    array.emplace_back(std::move(one));
  }
  return JsonValue(std::move(array));
}

JsonValue step_to_json(const StepAnalysis& step) {
  JsonObject one;
  one.push_back({"iteration", JsonValue(step.iteration)});
  one.push_back({"measured_ns", JsonValue(step.measured_ns)});
  one.push_back({"replay_ns", JsonValue(step.replay_ns)});
  one.push_back({"ideal_ns", JsonValue(step.ideal_ns)});
  one.push_back({"by_stage_ns", integers(step.by_stage_ns)});
  one.push_back({"by_replica_ns", integers(step.by_replica_ns)});
  one.push_back({"by_type_ns", integers(step.by_type_ns)});
  return JsonValue(std::move(one));
}

JsonValue row_to_json(const WhatIfRow& row, const WhatIf& what_if, const WhatIfOptions& options) {
  JsonObject one;
  one.push_back({"policy", JsonValue(describe(row.variant))});
  one.push_back({"network", JsonValue(to_word(kModes, row.variant.network))});
  if (!row.error.empty()) {
    one.push_back({"error", JsonValue(row.error)});
    return JsonValue(std::move(one));
  }
  one.push_back({"blocked_iterations", JsonValue(row.blocked)});
  if (row.ran()) {
    const WhatIfRow& first = what_if.rows.front();
    one.push_back({"mean_ns", JsonValue(std::int64_t{std::llround(row.mean_ns())})});
    if (first.ran()) one.push_back({"speedup", decimal(first.mean_ns() / row.mean_ns())});
    one.push_back({"step_ns", integers(row.step_ns)});
  }
  one.push_back({"peak_activations", JsonValue(row.peak_activations)});
  one.push_back({"peak_inbox_messages", JsonValue(row.peak_inbox)});
  one.push_back({"all_ranks_activations", JsonValue(row.all_ranks)});
  one.push_back({"note", JsonValue(note_of(row, what_if, options))});
  return JsonValue(std::move(one));
}

JsonValue what_if_to_json(const WhatIf& what_if, const WhatIfOptions& options) {
  JsonObject object;
  object.push_back({"recorded_as", JsonValue(what_if.recorded_as)});
  object.push_back({"budget", JsonValue(budget_text(options.budget))});
  object.push_back({"message_ns", JsonValue(options.message_ns)});
  if (options.split_fraction) {
    object.push_back({"assumed_split_fraction", decimal(*options.split_fraction)});
  }
  JsonArray rows;
  for (const WhatIfRow& row : what_if.rows) rows.push_back(row_to_json(row, what_if, options));
  object.push_back({"rows", JsonValue(std::move(rows))});
  const WhatIfRow& first = what_if.rows.front();
  object.push_back({"perfect_balance", bound_to_json(what_if.bound_ns, first)});
  object.push_back({"perfect_balance_work_alone", bound_to_json(what_if.work_bound_ns, first)});
  JsonArray ranks;
  for (const WhatIfRank& rank : what_if.ranks) {
    JsonObject one;
    one.push_back({"busy_ns", JsonValue(rank.busy_ns)});
    JsonObject idle;
    for (std::size_t i = 0; i < rank.idle_ns.size(); ++i) {
      const auto cause = static_cast<IdleCause>(i);
      if (rank.idle_ns[i] == 0 || cause == IdleCause::kRendezvous) continue;
      idle.push_back({std::string(name(cause)), JsonValue(rank.idle_ns[i])});
    }
    one.push_back({"idle_ns", JsonValue(std::move(idle))});
    one.push_back({"around_ns", JsonValue(rank.around_ns)});
    ranks.emplace_back(std::move(one));
  }
  object.push_back({"ranks", JsonValue(std::move(ranks))});
  object.push_back({"dropped", dropped_to_json(what_if.dropped)});
  return JsonValue(std::move(object));
}

}  // namespace

std::string describe_replay(const TraceHeader& header, const ReplayReport& report) {
  const ReplayAnalysis& analysis = report.analysis;
  const Means means = means_of(analysis);
  std::string text = report.file + ": " + describe_shape(header);
  text += counted(static_cast<std::int64_t>(analysis.steps.size()), "iteration") + ", measured " +
          time_with_unit(means.measured_ns) + " on average; replayed without launch delay " +
          time_with_unit(means.replay_ns) + ", " + fixed(analysis.replay_over_measured(), 3) +
          " of it\nslowdown " + fixed(analysis.slowdown(), 4) + " over an ideal of " +
          time_with_unit(means.ideal_ns) +
          ", in which every\noperation takes the mean of its type, messages and collectives the "
          "median\n\n";
  text += describe_groups(analysis, header.program.stages(), header.replicas);
  return text + describe_dropped(analysis.dropped, "record");
}

std::string describe_steps(const ReplayAnalysis& analysis) {
  std::int64_t longest_ns = 0;
  for (const StepAnalysis& step : analysis.steps) {
    longest_ns = std::max({longest_ns, step.measured_ns, step.replay_ns});
  }
  const DisplayUnit unit = time_unit(longest_ns);
  TextTable table({"iteration", "measured [" + std::string(unit.name) + "]", "replayed", "of it",
                   "ideal", "slowdown"});
  for (const StepAnalysis& step : analysis.steps) {
    const auto over = [](std::int64_t a, std::int64_t b) {
      return b == 0 ? std::string("-") : fixed(static_cast<double>(a) / static_cast<double>(b), 4);
    };
    table.add({std::to_string(step.iteration), in_unit(step.measured_ns, unit),
               in_unit(step.replay_ns, unit), over(step.replay_ns, step.measured_ns),
               in_unit(step.ideal_ns, unit), over(step.replay_ns, step.ideal_ns)});
  }
  return table.text();
}

std::string describe_causes(const WhatIf& what_if) {
  IdleTimes all{};
  for (const WhatIfRank& rank : what_if.ranks) {
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += rank.idle_ns[i];
  }
  std::vector<std::size_t> causes;
  std::vector<std::string> header = {"rank", "busy"};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == 0) continue;
    causes.push_back(i);
    header.emplace_back(name(static_cast<IdleCause>(i)));
  }
  header.emplace_back("around the pipeline");
  TextTable table(std::move(header));
  for (std::size_t r = 0; r < what_if.ranks.size(); ++r) {
    const WhatIfRank& rank = what_if.ranks[r];
    const std::int64_t whole_ns =
        std::accumulate(rank.idle_ns.begin(), rank.idle_ns.end(), rank.busy_ns + rank.around_ns);
    std::vector<std::string> cells = {std::to_string(r), percent(rank.busy_ns, whole_ns)};
    for (const std::size_t cause : causes) cells.push_back(percent(rank.idle_ns[cause], whole_ns));
    cells.push_back(percent(rank.around_ns, whole_ns));
    table.add(std::move(cells));
  }
  return "where the time of each rank went, in the recorded order" +
         (what_if.recorded_as.empty() ? "" : " (" + what_if.recorded_as + ")") + ":\n" +
         table.text() +
         "around the pipeline: collectives, optimizer, and replicas that are not done yet\n" +
         describe_dropped(what_if.dropped, "iteration");
}

std::string describe_what_if(const ReplayReport& report) {
  const WhatIf& what_if = *report.what_if;
  const WhatIfRow& first = what_if.rows.front();
  double longest_ns = mean_of(what_if.bound_ns);
  for (const WhatIfRow& row : what_if.rows) longest_ns = std::max(longest_ns, row.mean_ns());
  const DisplayUnit unit = time_unit(std::llround(longest_ns));
  TextTable table({"policy", "network", "mean [" + std::string(unit.name) + "]", "speed-up",
                   "peak activations", "of all ranks", "peak inbox", "note"});
  table.align_left(1);
  table.align_left(7);
  for (const WhatIfRow& row : what_if.rows) {
    const bool unknown = !row.error.empty();
    table.add({describe(row.variant), std::string(to_word(kModes, row.variant.network)),
               row.ran() ? in_unit(std::llround(row.mean_ns()), unit) : "-",
               row.ran() && first.ran() ? fixed(first.mean_ns() / row.mean_ns(), 3) : "-",
               unknown ? "-" : std::to_string(row.peak_activations),
               unknown ? "-" : std::to_string(row.all_ranks),
               unknown ? "-" : std::to_string(row.peak_inbox),
               note_of(row, what_if, report.options)});
  }
  table.add_rule();
  const auto add_bound = [&](const std::string& label, const std::vector<std::int64_t>& of_step_ns,
                             const std::string& note) {
    const double bound_ns = mean_of(of_step_ns);
    table.add({label, "-", in_unit(std::llround(bound_ns), unit),
               first.ran() ? fixed(first.mean_ns() / bound_ns, 3) : "-", "-", "-", "-", note});
  };
  add_bound("perfect balance across replicas", what_if.bound_ns,
            "a bound: mean work, shortest fill and drain");
  add_bound("perfect balance, work alone", what_if.work_bound_ns,
            "a bound: mean work of the busiest rank");
  std::string text = "what if, on the same durations (" +
                     counted(static_cast<std::int64_t>(what_if.iterations.size()), "iteration") +
                     " of all replicas" +
                     (what_if.recorded_as.empty() ? "" : "; recorded is " + what_if.recorded_as) +
                     "):\n" + table.text();
  text += "memory budget: " + budget_text(report.options.budget) + "\n";
  for (const WhatIfRow& row : what_if.rows) {
    if (row.variant.network != NetworkMode::kLaunchQueue) continue;
    text += "launch-queue: each message takes " + time_with_unit(report.options.message_ns) + "\n";
    break;
  }
  if (report.options.split_fraction) {
    text +=
        "assumed, not recorded: W is " + fixed(*report.options.split_fraction, 2) + " of each B\n";
  }
  return text;
}

JsonValue replay_to_json(const ReplayReport& report) {
  const ReplayAnalysis& analysis = report.analysis;
  const Means means = means_of(analysis);
  JsonObject root;
  root.push_back({"schema", JsonValue("rrfp.replay/1")});
  root.push_back({"trace", JsonValue(report.file)});
  root.push_back({"measured_mean_ns", JsonValue(means.measured_ns)});
  root.push_back({"replay_mean_ns", JsonValue(means.replay_ns)});
  root.push_back({"ideal_mean_ns", JsonValue(means.ideal_ns)});
  root.push_back({"replay_over_measured", decimal(analysis.replay_over_measured())});
  root.push_back({"slowdown", decimal(analysis.slowdown())});
  JsonArray stages;
  const StepAnalysis& first = analysis.steps.front();
  for (std::size_t i = 0; i < first.by_stage_ns.size(); ++i) {
    stages.push_back(decimal(analysis.stage_slowdown(static_cast<int>(i))));
  }
  root.push_back({"slowdown_by_stage", JsonValue(std::move(stages))});
  JsonArray replicas;
  for (std::size_t i = 0; i < first.by_replica_ns.size(); ++i) {
    replicas.push_back(decimal(analysis.replica_slowdown(static_cast<int>(i))));
  }
  root.push_back({"slowdown_by_replica", JsonValue(std::move(replicas))});
  JsonArray names;
  JsonArray types;
  for (std::size_t i = 0; i < first.by_type_ns.size(); ++i) {
    names.emplace_back(analysis.type_groups[i]);
    types.push_back(decimal(analysis.type_slowdown(static_cast<int>(i))));
  }
  root.push_back({"types", JsonValue(std::move(names))});
  root.push_back({"slowdown_by_type", JsonValue(std::move(types))});
  JsonArray steps;
  for (const StepAnalysis& step : analysis.steps) steps.push_back(step_to_json(step));
  root.push_back({"iterations", JsonValue(std::move(steps))});
  root.push_back({"dropped", dropped_to_json(analysis.dropped)});
  if (report.what_if) root.push_back({"what_if", what_if_to_json(*report.what_if, report.options)});
  return JsonValue(std::move(root));
}

}  // namespace rrfp
