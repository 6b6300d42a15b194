#include "experiments/validation.h"

#include <algorithm>
#include <cmath>

#include "executor/calibration_file.h"
#include "executor/realised_case.h"
#include "experiments/calibration_report.h"
#include "experiments/display_units.h"
#include "experiments/text_table.h"
#include "sim/simulate.h"

namespace rrfp {

namespace {

std::vector<std::int64_t> sorted(const std::vector<ValidatedIteration>& iterations,
                                 std::int64_t ValidatedIteration::*field) {
  std::vector<std::int64_t> values;
  for (const ValidatedIteration& iteration : iterations) values.push_back(iteration.*field);
  std::sort(values.begin(), values.end());
  return values;
}

std::int64_t median(const std::vector<std::int64_t>& values) {
  return values.empty() ? 0 : values[values.size() / 2];
}

double ratio(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) / static_cast<double>(std::max<std::int64_t>(b, 1));
}

// Ranks of the order statistics around the median, by the normal approximation
// of the binomial distribution.
std::size_t bound(std::size_t count, double sign) {
  const auto n = static_cast<double>(count);
  const double rank = n / 2 + sign * 1.96 * std::sqrt(n) / 2;
  return static_cast<std::size_t>(std::clamp(rank, 0.0, n - 1));
}

double median_model_error(const std::vector<ValidatedIteration>& iterations) {
  std::vector<double> errors;
  for (const ValidatedIteration& iteration : iterations) {
    errors.push_back(std::abs(ratio(iteration.simulated_ns, iteration.measured_ns) - 1));
  }
  std::sort(errors.begin(), errors.end());
  return errors.empty() ? 0 : errors[errors.size() / 2];
}

std::string percent_of(double value) { return fixed(100 * value, 3) + " %"; }

double worst(const std::vector<ValidatedPolicy>& policies) {
  double most = 0;
  for (const ValidatedPolicy& policy : policies) {
    if (policy.iterations.empty()) continue;
    most = std::max(most, std::abs(policy.prediction_error()));
  }
  return most;
}

}  // namespace

bool is_stalled(std::int64_t stall_ns, std::int64_t iteration_ns) {
  return stall_ns > std::max(kMostStallNs, iteration_ns / kMostStallPart);
}

std::int64_t ValidatedPolicy::median_measured_ns() const {
  return median(sorted(iterations, &ValidatedIteration::measured_ns));
}
std::int64_t ValidatedPolicy::median_predicted_ns() const {
  return median(sorted(iterations, &ValidatedIteration::predicted_ns));
}

double ValidatedPolicy::model_error() const { return median_model_error(iterations); }
double ValidatedPolicy::model_error_of_dropped() const { return median_model_error(stalled); }

double ValidatedPolicy::prediction_error() const {
  return ratio(median_predicted_ns(), median_measured_ns()) - 1;
}

std::int64_t ValidatedPolicy::least_measured_ns() const {
  const std::vector<std::int64_t> values = sorted(iterations, &ValidatedIteration::measured_ns);
  return values.empty() ? 0 : values[bound(values.size(), -1)];
}
std::int64_t ValidatedPolicy::most_measured_ns() const {
  const std::vector<std::int64_t> values = sorted(iterations, &ValidatedIteration::measured_ns);
  return values.empty() ? 0 : values[bound(values.size(), 1)];
}

Result<void> add_iteration(const PreparedRun& run, const IterationRecord& record,
                           const Calibration& calibration, ValidatedPolicy& to) {
  const bool stalled = is_stalled(record.worst_stall_ns(), record.iteration_ns());
  ++(stalled ? to.dropped : to.kept);
  for (int replica = 0; replica < run.plan->grid.replicas; ++replica) {
    const Result<SimulationResult> own = simulate(realised_case(*run.plan, record, replica));
    if (!own.ok()) return own.error();
    const Case& world =
        run.cases[static_cast<std::size_t>(record.iteration)][static_cast<std::size_t>(replica)];
    const Result<Case> calibrated = with_calibration(world, calibration);
    if (!calibrated.ok()) return calibrated.error();
    const Result<SimulationResult> predicted = simulate(*calibrated);
    if (!predicted.ok()) return predicted.error();
    (stalled ? to.stalled : to.iterations)
        .push_back({replica_makespan_ns(*run.plan, record, replica), own->makespan_ns,
                    predicted->makespan_ns});
  }
  return {};
}

RankingAgreement compare_rankings(const std::vector<ValidatedPolicy>& policies) {
  RankingAgreement agreement;
  for (std::size_t a = 0; a < policies.size(); ++a) {
    for (std::size_t b = 0; b < policies.size(); ++b) {
      if (policies[a].iterations.empty() || policies[b].iterations.empty()) continue;
      if (policies[a].most_measured_ns() >= policies[b].least_measured_ns()) continue;
      ++agreement.pairs;  // a is faster than b
      if (policies[a].median_predicted_ns() > policies[b].median_predicted_ns()) {
        ++agreement.reversed;
      }
    }
  }
  return agreement;
}

std::string what_is_foreign(const Calibration& calibration, const Calibration& of_job) {
  std::string text;
  const auto differs = [&text](const std::string& what, const std::string& there,
                               const std::string& here) {
    if (there == here || there.empty()) return;
    text += (text.empty() ? "" : ", ") + what + " " + there + " and not " + here;
  };
  const auto about = [](const Calibration& of) {
    return of.device ? of.device->about : std::string("emulated devices");
  };
  differs("of", calibration.job, of_job.job);
  differs("with", std::to_string(calibration.workers) + " workers",
          std::to_string(of_job.workers) + " workers");
  differs("over", calibration.transport, of_job.transport);
  differs("on", about(calibration), about(of_job));
  return text;
}

bool has_figures(const Validation& validation) {
  return std::none_of(validation.policies.begin(), validation.policies.end(),
                      [](const ValidatedPolicy& policy) { return policy.too_few(); });
}

namespace {

// What there is to be said against the figures, one a line.
std::string reservations(const Validation& validation) {
  std::string text;
  for (const ValidatedPolicy& policy : validation.policies) {
    if (!policy.too_few()) continue;
    text += "too few iterations: of " + policy.name + " " + std::to_string(policy.kept) + " of " +
            std::to_string(policy.kept + policy.dropped) +
            " had no stall of over 2 ms and 2 %; take a quieter machine, or fewer workers than "
            "cores\n";
  }
  if (!validation.foreign.empty()) {
    text += "warning: the calibration is of another job, made " + validation.foreign +
            "; what is predicted with it may be off: rrfp calibrate makes one of this job\n";
  }
  return text;
}

// Ends the sentence about the prediction; nothing where there is only one policy.
std::string ranked(const RankingAgreement& agreement, std::size_t policies) {
  if (policies < 2) return "";
  if (agreement.pairs == 0) return "; measurement tells no two policies apart";
  const int alike = agreement.pairs - agreement.reversed;
  if (agreement.pairs == 1) {
    return std::string("; the one pair of policies that measurement tells apart is ranked ") +
           (alike == 1 ? "alike" : "the other way");
  }
  return "; of " + std::to_string(agreement.pairs) +
         " pairs of policies that measurement tells apart, " +
         (agreement.reversed == 0 ? "all" : std::to_string(alike)) + " are ranked alike";
}

std::string why_void(const Validation& validation) {
  return why_void(validation.calibration, validation.mean_task_ns);
}

}  // namespace

std::string describe_validation(const Validation& validation) {
  const std::vector<ValidatedPolicy>& policies = validation.policies;
  const Calibration& calibration = validation.calibration;
  std::int64_t most_ns = 0;
  for (const ValidatedPolicy& policy : policies) {
    most_ns = std::max(most_ns, policy.median_measured_ns());
  }
  const DisplayUnit unit = time_unit(most_ns);
  TextTable table({"policy", "iterations", "dropped", "measured " + std::string(unit.name),
                   "95 % interval", "model error", "predicted", "prediction error"});
  std::vector<double> errors;
  for (const ValidatedPolicy& policy : policies) {
    if (policy.iterations.empty()) {
      table.add({policy.name, "0", std::to_string(policy.dropped), "-", "-", "-", "-", "-"});
      continue;
    }
    errors.push_back(std::abs(policy.prediction_error()));
    table.add({policy.name, std::to_string(policy.iterations.size()),
               std::to_string(policy.dropped), in_unit(policy.median_measured_ns(), unit),
               in_unit(policy.least_measured_ns(), unit) + " - " +
                   in_unit(policy.most_measured_ns(), unit),
               percent_of(policy.model_error()), in_unit(policy.median_predicted_ns(), unit),
               percent_of(policy.prediction_error())});
  }
  std::sort(errors.begin(), errors.end());
  std::string text = validation.name + " over " + validation.transport + "\n" + table.text() +
                     "\n" + std::to_string(validation.decisions) +
                     " decisions were made again from the calls that led to them, identically\n";
  text += device_lines(calibration) + "calibration: " + calibration_line(calibration) +
          "; timers are seen " + std::to_string(calibration.timer_p50_ns / 1000) +
          " us late (p50), " + std::to_string(calibration.timer_p99_ns / 1000) + " us (p99)\n";
  text += reservations(validation);
  if (const std::string reason = why_void(validation); !reason.empty()) {
    return text + "prediction: void, " + reason + "\n";
  }
  if (errors.empty()) return text + "prediction: void, every iteration had a stall\n";
  return text + "prediction: within " + percent_of(errors[errors.size() / 2]) +
         " in the median and " + percent_of(worst(policies)) + " for the worst policy" +
         ranked(compare_rankings(policies), policies.size()) + "\n";
}

JsonValue validation_to_json(const Validation& validation) {
  const Calibration& calibration = validation.calibration;
  JsonArray rows;
  for (const ValidatedPolicy& policy : validation.policies) {
    JsonArray iterations;
    for (const ValidatedIteration& iteration : policy.iterations) {
      JsonValue one{JsonObject{}};
      one.add("measured_ns", JsonValue(iteration.measured_ns));
      one.add("simulated_ns", JsonValue(iteration.simulated_ns));
      one.add("predicted_ns", JsonValue(iteration.predicted_ns));
      iterations.push_back(std::move(one));
    }
    JsonValue row{JsonObject{}};
    row.add("policy", JsonValue(policy.name));
    row.add("dropped", JsonValue(policy.dropped));
    row.add("too_few_iterations", JsonValue(policy.too_few()));
    row.add("median_measured_ns", JsonValue(policy.median_measured_ns()));
    JsonArray interval;
    interval.push_back(JsonValue(policy.least_measured_ns()));
    interval.push_back(JsonValue(policy.most_measured_ns()));
    row.add("measured_interval_ns", JsonValue(std::move(interval)));
    row.add("median_predicted_ns", JsonValue(policy.median_predicted_ns()));
    row.add("model_error", JsonValue(Decimal{fixed(policy.model_error(), 6)}));
    row.add("model_error_of_dropped",
            JsonValue(Decimal{fixed(policy.model_error_of_dropped(), 6)}));
    row.add("prediction_error", JsonValue(Decimal{fixed(policy.prediction_error(), 6)}));
    row.add("iterations", JsonValue(std::move(iterations)));
    rows.push_back(std::move(row));
  }
  const RankingAgreement agreement = compare_rankings(validation.policies);
  JsonValue json{JsonObject{}};
  json.add("schema", JsonValue("rrfp.validation/1"));
  json.add("name", JsonValue(validation.name));
  json.add("transport", JsonValue(validation.transport));
  json.add("decisions", JsonValue(validation.decisions));
  json.add("timer_late_p99_ns", JsonValue(calibration.timer_p99_ns));
  const std::string reason = why_void(validation);
  json.add("prediction_void", JsonValue(!reason.empty()));
  if (!reason.empty()) json.add("prediction_void_reason", JsonValue(reason));
  if (!validation.foreign.empty()) {
    json.add("calibration_of_another_job", JsonValue(validation.foreign));
  }
  json.add("task_extra_ns", JsonValue(calibration.task_extra_ns));
  json.add("message_extra_ns", JsonValue(calibration.message_extra_ns));
  json.add("calibration", calibration_to_json(calibration));
  json.add("ranked_pairs", JsonValue(agreement.pairs));
  json.add("reversed_pairs", JsonValue(agreement.reversed));
  json.add("policies", JsonValue(std::move(rows)));
  return json;
}

}  // namespace rrfp
