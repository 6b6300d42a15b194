#include "experiments/fit_check.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "experiments/parallel_for.h"
#include "experiments/sample.h"
#include "experiments/world_runner.h"
#include "traces/scenario_resolve.h"

namespace rrfp {

namespace {

/// Durations of drawn worlds that shapes are taken from, at most.
constexpr std::size_t kMostDurations = 2'000'000;

/// Relative to `mean_ns`, in the order of the rows.
std::vector<double> relative(const DurationTable& table, std::size_t column, double mean_ns) {
  std::vector<double> values(table.rows(), 1.0);
  for (std::size_t row = 0; mean_ns > 0 && row < values.size(); ++row) {
    values[row] = static_cast<double>(table.at(column, row)) / mean_ns;
  }
  return values;
}

/// The shape of each kind in a table, and the values behind it.
class Shapes {
 public:
  Shapes(const DurationTable& table, const VarianceComponents& components,
         const std::vector<double>& mean_ns)
      : table_(table), components_(components) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      values_.push_back(relative(table, column, mean_ns[column]));
    }
  }

  std::vector<Kind> kinds() const {
    std::vector<Kind> kinds;
    for (const DurationColumn& column : table_.columns) kinds.push_back(column.kind);
    std::sort(kinds.begin(), kinds.end());
    kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
    return kinds;
  }

  /// Of all stages together, ascending.
  std::vector<double> pooled(Kind kind) const {
    std::vector<double> all;
    for (const std::size_t column : columns_of(kind)) {
      all.insert(all.end(), values_[column].begin(), values_[column].end());
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  KindShape of(Kind kind) const {
    KindShape shape;
    shape.kind = kind;
    const std::vector<double> all = pooled(kind);
    shape.deviation = standard_deviation(all);
    for (std::size_t i = 0; i < kFitPercents.size(); ++i) {
      shape.quantiles[i] = quantile(all, kFitPercents[i] / 100.0);
    }
    correlate(shape);
    share_out(shape);
    return shape;
  }

 private:
  std::vector<std::size_t> columns_of(Kind kind) const {
    std::vector<std::size_t> columns;
    for (std::size_t column = 0; column < table_.columns.size(); ++column) {
      if (table_.columns[column].kind == kind) columns.push_back(column);
    }
    return columns;
  }

  void correlate(KindShape& shape) const {
    const std::vector<std::size_t> own = columns_of(shape.kind);
    std::vector<double> with_forward;
    std::vector<double> across;
    for (const std::size_t a : own) {
      for (const std::size_t b : columns_of(Kind::kForward)) {
        if (a == b || table_.columns[a].stage != table_.columns[b].stage) continue;
        with_forward.push_back(correlation(values_[a], values_[b]));
      }
      for (const std::size_t b : own) {
        if (a < b) across.push_back(correlation(values_[a], values_[b]));
      }
    }
    shape.with_forward = mean(with_forward);
    shape.across_stages = mean(across);
  }

  void share_out(KindShape& shape) const {
    std::size_t varying = 0;
    for (const std::size_t column : columns_of(shape.kind)) {
      const auto square_of = [column](const CommonFactor& factor) {
        return factor.load[column] * factor.load[column];
      };
      const auto kind = static_cast<std::size_t>(shape.kind);
      const double microbatch = square_of(components_.microbatch);
      const double of_kind = square_of(components_.of_kind[kind]) * (1 + microbatch);
      const double residual = components_.residual_variance[column] * (1 + microbatch + of_kind);
      double whole = microbatch + of_kind + residual;
      for (const EffectEstimate& effect : components_.effects) whole += effect.variance;
      if (whole <= 0) continue;
      ++varying;
      for (std::size_t i = 0; i < shape.effects.size(); ++i) {
        shape.effects[i] += components_.effects[i].variance / whole;
      }
      shape.microbatch += microbatch / whole;
      shape.of_kind += of_kind / whole;
      shape.residual += residual / whole;
    }
    if (varying == 0) return;
    for (double& effect : shape.effects) effect /= static_cast<double>(varying);
    for (double* const part : {&shape.microbatch, &shape.of_kind, &shape.residual}) {
      *part /= static_cast<double>(varying);
    }
  }

  const DurationTable& table_;
  const VarianceComponents& components_;
  std::vector<std::vector<double>> values_;  ///< by column
};

/// With the columns of the recorded job, also where its backward is split by assumption.
DurationTable draw(const ScenarioResolver& resolver, bool split, int iterations) {
  const int replicas = resolver.scenario().data_parallel.replicas;
  DurationCollector collector(resolver.program(), replicas);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (int replica = 0; replica < replicas; ++replica) {
      collector.add(resolver.draw_world(iteration, replica).duration_ns);
    }
  }
  return collector.table(split);
}

Result<std::vector<std::int64_t>> simulate_steps(const ScenarioResolver& resolver, int iterations,
                                                 int threads,
                                                 const std::function<void()>& on_iteration) {
  ScheduleCache schedules(resolver.program().task_ids());
  const Result<WorldRunner> runner = WorldRunner::create(resolver, schedules);
  if (!runner.ok()) return runner.error();
  std::vector<std::int64_t> step_ns(static_cast<std::size_t>(iterations));
  std::vector<std::optional<Error>> errors(step_ns.size());
  parallel_for(step_ns.size(), threads, [&](std::size_t i) {
    const auto runs = runner->run(static_cast<int>(i));
    if (!runs.ok()) {
      errors[i] = runs.error();
    } else if (!runs->front().completed) {
      errors[i] = Error{"the recorded order blocks in iteration " + std::to_string(i)};
    } else {
      step_ns[i] = runs->front().iteration_ns;
    }
    on_iteration();
    return !errors[i].has_value();
  });
  for (const std::optional<Error>& error : errors) {
    if (error) return *error;
  }
  return step_ns;
}

}  // namespace

Result<FitCheck> check_fit(const FitObservations& observed, const VarianceComponents& components,
                           const Scenario& scenario, int iterations, int threads,
                           const std::function<void()>& on_iteration) {
  Scenario recorded = scenario;
  recorded.policies.resize(1);
  recorded.iterations = iterations;
  const Result<ScenarioResolver> resolver = ScenarioResolver::create(std::move(recorded));
  if (!resolver.ok()) return resolver.error();

  FitCheck check;
  check.iterations = iterations;
  const std::size_t of_each =
      observed.durations.ns.size() / static_cast<std::size_t>(observed.durations.iterations);
  const std::size_t fit = std::max<std::size_t>(2, kMostDurations / of_each);
  const DurationTable drawn = draw(*resolver, observed.program.split_backward(),
                                   static_cast<int>(std::min<std::size_t>(iterations, fit)));
  const Result<VarianceComponents> again = decompose_variance(drawn);
  if (!again.ok()) return again.error();
  const Shapes before(observed.durations, components, components.mean_ns);
  const Shapes after(drawn, *again, components.mean_ns);
  for (const Kind kind : before.kinds()) {
    check.kinds.push_back(
        {before.of(kind), after.of(kind), ks_distance(before.pooled(kind), after.pooled(kind))});
  }
  Result<std::vector<std::int64_t>> step_ns =
      simulate_steps(*resolver, iterations, threads, on_iteration);
  if (!step_ns.ok()) return step_ns.error();
  check.simulated_ns = *std::move(step_ns);
  return check;
}

}  // namespace rrfp
