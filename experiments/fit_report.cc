#include "experiments/fit_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/display_units.h"
#include "experiments/sample.h"
#include "experiments/statistics.h"
#include "experiments/text_list.h"
#include "experiments/text_table.h"
#include "experiments/trace_report.h"
#include "traces/json_writer.h"
#include "traces/scenario_file.h"

namespace rrfp {

namespace {

std::string share(double part) { return fixed(100 * part, 1) + " %"; }

std::string letters(Kind kind) { return std::string(1, letter(kind)); }

std::string probability(double p) { return p < 0.001 ? "< 0.001" : fixed(p, 3); }

struct StepTimes {
  double mean_ns = 0;
  std::int64_t p50_ns = 0;
  std::int64_t p95_ns = 0;
};

StepTimes times_of(const std::vector<std::int64_t>& step_ns) {
  return {mean(step_ns), percentile(step_ns, 50), percentile(step_ns, 95)};
}

std::string describe_sources(const FitReport& report) {
  std::vector<std::string> header = {"source"};
  for (const KindFit& kind : report.check.kinds) {
    header.push_back(letters(kind.recorded.kind) + " recorded");
    header.emplace_back("drawn");
  }
  header.emplace_back("p-value");
  header.emplace_back("note");
  TextTable table(std::move(header));
  table.align_left(2 * report.check.kinds.size() + 2);
  const auto row = [&](std::string_view name, auto part, const std::string& p,
                       const std::string& note) {
    std::vector<std::string> cells = {std::string(name)};
    for (const KindFit& kind : report.check.kinds) {
      cells.push_back(share(part(kind.recorded)));
      cells.push_back(share(part(kind.drawn)));
    }
    cells.push_back(p);
    cells.push_back(note);
    table.add(std::move(cells));
  };
  const VarianceComponents& components = report.components;
  row(
      "microbatch", [](const KindShape& shape) { return shape.microbatch; },
      probability(components.microbatch.p_value),
      components.microbatch.found() ? "" : "left out: not told from 0");
  row(
      "microbatch, one kind", [](const KindShape& shape) { return shape.of_kind; }, "-", "");
  for (std::size_t i = 0; i < kVarianceSources; ++i) {
    const EffectEstimate& effect = components.effects[i];
    const bool always = i == static_cast<std::size_t>(VarianceSource::kReplica) ||
                        i == static_cast<std::size_t>(VarianceSource::kGpu);
    const std::string note = !effect.estimable       ? "not told by this trace"
                             : !effect.significant() ? "left out: not told from 0"
                             : always                ? "where not small, this job's own"
                                                     : "";
    row(
        kVarianceSourceNames[i], [i](const KindShape& shape) { return shape.effects[i]; },
        effect.estimable ? probability(effect.p_value) : "-", note);
  }
  row(
      "residual", [](const KindShape& shape) { return shape.residual; }, "-", "");
  return "where the variance of durations comes from, as recorded and as drawn:\n" + table.text();
}

std::string describe_shapes(const FitReport& report) {
  std::vector<std::string> header = {"duration / mean", "sd"};
  for (const int percent : kFitPercents) header.push_back("p" + std::to_string(percent));
  header.insert(header.end(), {"KS", "with F", "across stages"});
  TextTable table(std::move(header));
  const bool several = report.observed.program.stages() > 1;
  const auto row = [&](const std::string& name, const KindShape& shape, const std::string& ks) {
    std::vector<std::string> cells = {letters(shape.kind) + " " + name, fixed(shape.deviation, 4)};
    for (const double value : shape.quantiles) cells.push_back(fixed(value, 3));
    cells.push_back(ks);
    cells.push_back(shape.kind == Kind::kForward ? "-" : fixed(shape.with_forward, 3));
    cells.push_back(several ? fixed(shape.across_stages, 3) : "-");
    table.add(std::move(cells));
  };
  for (const KindFit& kind : report.check.kinds) {
    row("recorded", kind.recorded, "");
    row("drawn", kind.drawn, fixed(kind.ks_distance, 3));
  }
  return "durations and their correlations (of a microbatch, with its F on the same stage and with "
         "the\nsame kind on other stages); KS: the largest difference of the two distributions:\n" +
         table.text();
}

std::string describe_steps(const FitReport& report) {
  const StepTimes measured = times_of(report.observed.measured_ns);
  const StepTimes replayed = times_of(report.observed.replay_ns);
  const StepTimes simulated = times_of(report.check.simulated_ns);
  const DisplayUnit unit = time_unit(std::llround(measured.mean_ns));
  TextTable table({"step time [" + std::string(unit.name) + "]", "steps", "mean", "p50", "p95"});
  const auto row = [&](const std::string& name, std::size_t steps, const StepTimes& times) {
    table.add({name, std::to_string(steps), in_unit(std::llround(times.mean_ns), unit),
               in_unit(times.p50_ns, unit), in_unit(times.p95_ns, unit)});
  };
  const auto over = [](double a, double b) { return b > 0 ? fixed(a / b, 4) : std::string("-"); };
  const auto ratio = [&](const std::string& name, const StepTimes& below) {
    table.add({name, "", over(simulated.mean_ns, below.mean_ns),
               over(static_cast<double>(simulated.p50_ns), static_cast<double>(below.p50_ns)),
               over(static_cast<double>(simulated.p95_ns), static_cast<double>(below.p95_ns))});
  };
  row("measured", report.observed.measured_ns.size(), measured);
  row("replayed", report.observed.replay_ns.size(), replayed);
  row("simulated", report.check.simulated_ns.size(), simulated);
  ratio("simulated / measured", measured);
  ratio("simulated / replayed", replayed);
  std::string text =
      "steps of the fitted scenario under the recorded order, drawn and simulated:\n" +
      table.text();
  const std::vector<double> step_ns(report.observed.measured_ns.begin(),
                                    report.observed.measured_ns.end());
  const double steps = static_cast<double>(step_ns.size());
  if (measured.mean_ns > 0) {
    text += "the measured mean itself is known to within " +
            share(standard_deviation(step_ns) / std::sqrt(steps - 1) / measured.mean_ns) +
            " (standard error)\n";
  }
  return text;
}

/// Of all links together, ascending.
std::vector<double> transfers_of(const FitObservations& observed) {
  std::vector<double> all;
  for (const std::vector<std::int64_t>& edge : observed.transfers_ns) {
    all.insert(all.end(), edge.begin(), edge.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string describe_transfers(const FitReport& report) {
  const std::vector<double> all = transfers_of(report.observed);
  if (all.empty()) return "transfers: none were recorded\n";
  const DisplayUnit unit = time_unit(std::llround(quantile(all, 0.95)));
  const auto at = [&](double p) { return in_unit(std::llround(quantile(all, p)), unit); };
  return "transfers: " + counted(static_cast<std::int64_t>(all.size()), "message") + ", p5 " +
         at(0.05) + ", median " + at(0.5) + ", p95 " + at(0.95) + ", p99 " + at(0.99) + " " +
         std::string(unit.name) + "; each link draws from its own quantiles\n";
}

/// What the file was made from, in a line.
std::string origin_of(const FitReport& report) {
  const DurationTable& table = report.observed.durations;
  return counted(table.iterations, "iteration") + " of " + counted(table.replicas, "replica") +
         ", " + counted(table.rows(), "microbatch");
}

/// For a comment, which ends with its line: a file name may hold anything.
std::string in_a_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  return text;
}

JsonValue decimal(double value) { return JsonValue(Decimal{fixed(value, 6)}); }

std::string key_of(std::string_view name) {
  std::string key(name);
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

JsonValue shape_to_json(const KindShape& shape) {
  JsonValue out{JsonObject()};
  out.add("sd", decimal(shape.deviation));
  JsonValue quantiles{JsonObject()};
  for (std::size_t i = 0; i < kFitPercents.size(); ++i) {
    quantiles.add("p" + std::to_string(kFitPercents[i]), decimal(shape.quantiles[i]));
  }
  out.add("quantiles", std::move(quantiles));
  out.add("correlation_with_f", decimal(shape.with_forward));
  out.add("correlation_across_stages", decimal(shape.across_stages));
  JsonValue shares{JsonObject()};
  shares.add("microbatch", decimal(shape.microbatch));
  shares.add("microbatch_one_kind", decimal(shape.of_kind));
  for (std::size_t i = 0; i < kVarianceSources; ++i) {
    shares.add(key_of(kVarianceSourceNames[i]), decimal(shape.effects[i]));
  }
  shares.add("residual", decimal(shape.residual));
  out.add("variance_shares", std::move(shares));
  return out;
}

JsonValue steps_to_json(const std::vector<std::int64_t>& step_ns) {
  const StepTimes times = times_of(step_ns);
  JsonValue out{JsonObject()};
  out.add("steps", JsonValue(static_cast<std::int64_t>(step_ns.size())));
  out.add("mean_ns", JsonValue(std::int64_t{std::llround(times.mean_ns)}));
  out.add("p50_ns", JsonValue(times.p50_ns));
  out.add("p95_ns", JsonValue(times.p95_ns));
  return out;
}

JsonValue effects_to_json(const VarianceComponents& components) {
  JsonValue out{JsonObject()};
  for (std::size_t i = 0; i < kVarianceSources; ++i) {
    const EffectEstimate& effect = components.effects[i];
    JsonValue one{JsonObject()};
    one.add("estimable", JsonValue(effect.estimable));
    one.add("p_value", decimal(effect.p_value));
    one.add("sd", decimal(std::sqrt(effect.variance)));
    out.add(key_of(kVarianceSourceNames[i]), std::move(one));
  }
  return out;
}

}  // namespace

std::string describe_fit(const TraceHeader& header, const FitReport& report) {
  const FitObservations& observed = report.observed;
  std::string text = report.file + ": " + describe_shape(header);
  text += "fitted to " + origin_of(report) + "; recorded order: " +
          (observed.schedule.empty() ? "one without a name" : observed.schedule) + "\n";
  text += describe_dropped(observed.dropped, "iteration");
  text += "\n" + describe_sources(report) + "\n" + describe_shapes(report) +
          describe_transfers(report) + "\n" + describe_steps(report);
  text += "\nwhat the trace does not tell:\n";
  for (const std::string& sentence : report.fitted.unknown) text += "- " + sentence + "\n";
  return text;
}

JsonValue fit_to_json(const FitReport& report) {
  JsonValue out{JsonObject()};
  out.add("schema", JsonValue("rrfp.fit/1"));
  out.add("trace", JsonValue(report.file));
  out.add("iterations", JsonValue(report.observed.durations.iterations));
  out.add("replicas", JsonValue(report.observed.durations.replicas));
  out.add("recorded_as", JsonValue(report.observed.schedule));
  out.add("dropped_iterations", JsonValue(report.observed.dropped.total()));
  out.add("effects", effects_to_json(report.components));
  out.add("microbatch_p_value", decimal(report.components.microbatch.p_value));
  JsonValue kinds{JsonObject()};
  for (const KindFit& kind : report.check.kinds) {
    JsonValue one{JsonObject()};
    one.add("recorded", shape_to_json(kind.recorded));
    one.add("drawn", shape_to_json(kind.drawn));
    one.add("ks_distance", decimal(kind.ks_distance));
    kinds.add(letters(kind.recorded.kind), std::move(one));
  }
  out.add("kinds", std::move(kinds));
  const std::vector<double> all = transfers_of(report.observed);
  if (!all.empty()) {
    JsonValue transfers{JsonObject()};
    transfers.add("messages", JsonValue(static_cast<std::int64_t>(all.size())));
    for (const int percent : kFitPercents) {
      transfers.add("p" + std::to_string(percent) + "_ns",
                    JsonValue(std::int64_t{std::llround(quantile(all, percent / 100.0))}));
    }
    out.add("transfers", std::move(transfers));
  }
  JsonValue steps{JsonObject()};
  steps.add("measured", steps_to_json(report.observed.measured_ns));
  steps.add("replayed", steps_to_json(report.observed.replay_ns));
  steps.add("simulated", steps_to_json(report.check.simulated_ns));
  out.add("step_time", std::move(steps));
  JsonArray unknown;
  for (const std::string& sentence : report.fitted.unknown) unknown.emplace_back(sentence);
  out.add("unknown", JsonValue(std::move(unknown)));
  out.add("scenario", scenario_to_json(report.fitted.scenario));
  return out;
}

std::string fitted_scenario_text(const FitReport& report) {
  std::string text = "// Fitted by `rrfp fit " + in_a_line(report.file) +
                     "`: " + origin_of(report) +
                     ".\n// `rrfp sweep` and `rrfp simulate` take this file; edit it freely.\n" +
                     "// What the trace does not tell:\n";
  for (const std::string& sentence : report.fitted.unknown) text += "// - " + sentence + "\n";
  return text + to_text(scenario_to_json(report.fitted.scenario), JsonLayout::kReadable) + "\n";
}

}  // namespace rrfp
