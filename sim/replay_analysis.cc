#include "sim/replay_analysis.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/median_count.h"
#include "traces/trace_steps.h"

namespace rrfp {

namespace {

/// What the ideal of a type is made of. One type may have both rows that wait
/// for others and rows that do not; whichever it has more of decides.
struct TypeTotals {
  std::int64_t own = 0;
  std::int64_t waiting = 0;
  std::int64_t own_ns = 0;
  MedianCount waiting_ns;
};

std::int64_t ideal_of(const TypeTotals& totals) {
  if (totals.waiting > totals.own) return totals.waiting_ns.median();
  return totals.own == 0 ? 0 : (totals.own_ns + totals.own / 2) / totals.own;
}

using StepVisitor = std::function<Result<void>(const TraceHeader&, const ReplayStep&)>;

/// Calls `visit` for each step of the trace.
Result<void> for_each_step(TraceSource& source, ReplayTypes* types, const StepVisitor& visit) {
  if (Result<void> rewound = source.rewind(); !rewound.ok()) return rewound.error();
  TraceStep recorded;
  bool any = false;
  while (true) {
    const Result<bool> more = source.next(&recorded);
    if (!more.ok()) return more.error();
    if (!*more) break;
    if (recorded.tasks.empty()) continue;
    any = true;
    const Result<ReplayStep> step = ReplayStep::create(source.header(), recorded, types);
    if (!step.ok()) return step.error();
    if (Result<void> visited = visit(source.header(), *step); !visited.ok()) {
      return visited.error();
    }
  }
  if (!any) return Error{"holds no iteration with tasks, so there is nothing to replay"};
  return {};
}

/// The group of a type: both ends of a message are one.
int group_of(int type) {
  if (type < ReplayTypes::kMessages) return type;
  if (type < ReplayTypes::kMessages + 4) {
    return ReplayTypes::kMessages + (type - ReplayTypes::kMessages) / 2;
  }
  return type - 2;
}

std::vector<std::string> group_names(const ReplayTypes& types) {
  std::vector<std::string> names(static_cast<std::size_t>(types.size() - 2));
  for (int type = 0; type < types.size(); ++type) names[group_of(type)] = types.name(type);
  names[ReplayTypes::kMessages] = "F messages";
  names[ReplayTypes::kMessages + 1] = "B messages";
  return names;
}

/// Replays one step with one group after another put back.
class Decomposition {
 public:
  Decomposition(const ReplayStep& step, std::span<const std::int64_t> ideal_ns)
      : step_(step), ends_(step.operations().size()) {
    for (const ReplayOperation& operation : step.operations()) {
      ideal_.push_back(ideal_ns[operation.type]);
      recorded_.push_back(operation.recorded_ns);
    }
    durations_ = ideal_;
  }

  std::int64_t replay() { return step_.run(recorded_, ends_); }
  std::int64_t ideal() { return step_.run(ideal_, ends_); }

  /// By group, `group_of(operation)` being one of 0 to groups - 1.
  template <typename GroupOf>
  std::vector<std::int64_t> by(int groups, GroupOf group_of) {
    std::vector<std::vector<int>> members(static_cast<std::size_t>(groups));
    for (std::size_t i = 0; i < ideal_.size(); ++i) {
      members[group_of(step_.operations()[i])].push_back(static_cast<int>(i));
    }
    std::vector<std::int64_t> ends_ns;
    for (const std::vector<int>& group : members) {
      for (const int i : group) durations_[i] = recorded_[i];
      ends_ns.push_back(group.empty() && !ends_ns.empty() ? ideal() : step_.run(durations_, ends_));
      for (const int i : group) durations_[i] = ideal_[i];
    }
    return ends_ns;
  }

 private:
  const ReplayStep& step_;
  std::vector<std::int64_t> ideal_;
  std::vector<std::int64_t> recorded_;
  std::vector<std::int64_t> durations_;
  std::vector<std::int64_t> ends_;
};

StepAnalysis analyse(const TraceHeader& header, const ReplayStep& step, const ReplayTypes& types,
                     std::span<const std::int64_t> ideal_ns, const ReplayOptions& options) {
  Decomposition decomposition(step, ideal_ns);
  StepAnalysis analysis{.iteration = step.iteration(),
                        .measured_ns = step.measured_ns(),
                        .replay_ns = decomposition.replay(),
                        .ideal_ns = decomposition.ideal(),
                        .by_stage_ns = {},
                        .by_replica_ns = {},
                        .by_type_ns = {}};
  if (!options.decompose) return analysis;
  analysis.by_stage_ns = decomposition.by(
      header.program.stages(), [](const ReplayOperation& operation) { return operation.stage; });
  analysis.by_replica_ns = decomposition.by(
      header.replicas, [](const ReplayOperation& operation) { return operation.replica; });
  analysis.by_type_ns = decomposition.by(
      types.size() - 2, [](const ReplayOperation& operation) { return group_of(operation.type); });
  return analysis;
}

template <typename NsOf>
double ratio(const std::vector<StepAnalysis>& steps, NsOf numerator,
             std::int64_t StepAnalysis::*denominator) {
  double above = 0;
  double below = 0;
  for (const StepAnalysis& step : steps) {
    above += static_cast<double>(numerator(step));
    below += static_cast<double>(step.*denominator);
  }
  return below > 0 ? above / below : 0;
}

}  // namespace

double ReplayAnalysis::replay_over_measured() const {
  return ratio(
      steps, [](const StepAnalysis& step) { return step.replay_ns; }, &StepAnalysis::measured_ns);
}

double ReplayAnalysis::slowdown() const {
  return ratio(
      steps, [](const StepAnalysis& step) { return step.replay_ns; }, &StepAnalysis::ideal_ns);
}

double ReplayAnalysis::stage_slowdown(int stage) const {
  return ratio(
      steps, [stage](const StepAnalysis& step) { return step.by_stage_ns[stage]; },
      &StepAnalysis::ideal_ns);
}

double ReplayAnalysis::replica_slowdown(int replica) const {
  return ratio(
      steps, [replica](const StepAnalysis& step) { return step.by_replica_ns[replica]; },
      &StepAnalysis::ideal_ns);
}

double ReplayAnalysis::type_slowdown(int group) const {
  return ratio(
      steps, [group](const StepAnalysis& step) { return step.by_type_ns[group]; },
      &StepAnalysis::ideal_ns);
}

Result<ReplayAnalysis> analyse_trace(TraceSource& source, const ReplayOptions& options) {
  ReplayTypes types;
  std::vector<TypeTotals> totals;
  const auto count = [&](const TraceHeader&, const ReplayStep& step) -> Result<void> {
    totals.resize(static_cast<std::size_t>(types.size()));
    for (const ReplayOperation& operation : step.operations()) {
      TypeTotals& type = totals[operation.type];
      if (operation.waits) {
        ++type.waiting;
        type.waiting_ns.add(operation.recorded_ns);
      } else {
        ++type.own;
        type.own_ns += operation.recorded_ns;
      }
    }
    return {};
  };
  const Result<void> counted = for_each_step(source, &types, count);
  if (!counted.ok()) return counted.error();

  ReplayAnalysis analysis;
  for (const TypeTotals& type : totals) {
    analysis.ideal_ns.push_back(ideal_of(type));
    analysis.operations.push_back(type.own + type.waiting);
  }
  const auto replay = [&](const TraceHeader& header, const ReplayStep& step) -> Result<void> {
    analysis.steps.push_back(analyse(header, step, types, analysis.ideal_ns, options));
    return {};
  };
  const Result<void> replayed = for_each_step(source, &types, replay);
  if (!replayed.ok()) return replayed.error();
  analysis.dropped = source.dropped();
  for (int type = 0; type < types.size(); ++type) analysis.types.push_back(types.name(type));
  analysis.type_groups = group_names(types);
  return analysis;
}

Result<ReplayAnalysis> analyse_trace(const std::string& path, const ReplayOptions& options) {
  const Result<OpenedTrace> trace = open_trace(path);
  if (!trace.ok()) return trace.error();
  Result<ReplayAnalysis> analysis = analyse_trace(*trace->source, options);
  if (analysis.ok() || analysis.error().message.starts_with(path)) return analysis;
  return Error{path + ": " + analysis.error().message};
}

}  // namespace rrfp
