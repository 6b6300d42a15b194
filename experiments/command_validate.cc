// rrfp validate: runs both worlds, policy by policy, and compares them.
#include <array>
#include <ostream>

#include "executor/calibration_file.h"
#include "executor/decision_log.h"
#include "executor/replay_log.h"
#include "experiments/calibration_report.h"
#include "experiments/calibration_run.h"
#include "experiments/input_file.h"
#include "experiments/job_command.h"
#include "experiments/kept_iterations.h"
#include "experiments/run_progress.h"
#include "experiments/validation.h"
#include "traces/atomic_file.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr std::array kOptions = {
    OptionRow{"iterations", "N", "of each policy (default 20)"},
    OptionRow{"calibration", "FILE", "use this calibration instead of one made in this job",
              OptionRow::Alike::kWhetherGiven, OptionRow::File::kRead},
    OptionRow{kPolicyRow.name, "NAME,...", "of a scenario: only these (default: all)"},
    kPointRow,
    kTransportRow,
    kDeviceRow,
    kGpuRow,
    OptionRow{"out", "FILE", "also write every iteration as JSON, for plots/validation.py",
              OptionRow::Alike::kWhetherGiven, OptionRow::File::kReplaced},
    OptionRow{"json", "", "print that JSON instead of the table", OptionRow::Alike::kNot},
    kPayloadRow,
    kPatienceRow,
    kAgreeRow,
    kFileLimitRow,
};

// Makes every decision of a run again. The error is the first that differs.
Result<std::int64_t> replay(const RunPlan& plan, const std::vector<IterationRecord>& records) {
  std::string log = decision_log_header(plan);
  for (const IterationRecord& record : records) log += decision_log_of(plan, record);
  const Result<ReplayReport> report = replay_decisions(log, "the decisions of this run");
  if (!report.ok()) return report.error();
  if (report->difference) return Error{*report->difference};
  return report->decisions;
}

// What a calibration made in this job would say of it.
Calibration job_of(const RunInput& input, const Job& job, const PreparedRun& prepared,
                   const Equipment& equipment) {
  Calibration of_job;
  of_job.job = input.title();
  of_job.transport = job.name();
  of_job.workers = prepared.plan->grid.size();
  if (!equipment.about.empty()) of_job.device = CalibratedDevice{equipment.about, {}};
  return of_job;
}

// Runs one policy and adds it. Where a decision differs the outcome is a fault.
Result<void> validate_policy(Job& job, const RunInput& input, int policy, int iterations,
                             const DeviceChoice& device, const Options& options, Validation& to,
                             RunOutcome& outcome, Terminal& terminal) {
  Result<PreparedRun> prepared = input.prepare(policy, iterations);
  if (!prepared.ok()) return prepared.error();
  RunPlan& plan = *prepared->plan;
  if (Result<void> tuned = tune(options, plan); !tuned.ok()) return tuned;
  plan.core.record = true;
  const Result<Equipment> equipment = equip(device, plan, job);
  if (!equipment.ok()) return equipment.error();
  if (to.policies.empty()) {  // all policies are of one job
    to.foreign = what_is_foreign(to.calibration, job_of(input, job, *prepared, *equipment));
  }
  auto sink = std::make_shared<KeptIterations>();
  const bool first = options.text("calibration") && to.policies.empty();
  const Result<RunOutcome> ran =
      run_with_progress(job, *prepared, *equipment, sink,
                        "rrfp validate: " + input.policy_name(policy), terminal, first);
  if (!ran.ok()) return ran.error();
  outcome = *ran;
  ValidatedPolicy& validated = to.policies.emplace_back();
  validated.name = input.policy_name(policy);
  for (const IterationRecord& record : sink->all) {
    Result<void> added = add_iteration(*prepared, record, to.calibration, validated);
    if (!added.ok()) return added;
  }
  const Result<std::int64_t> replayed = replay(plan, sink->all);
  if (replayed.ok()) {
    to.decisions += *replayed;
  } else if (outcome.end == RunEnd::kCompleted) {
    outcome.end = RunEnd::kFault;
    outcome.why = validated.name + ": " + replayed.error().message;
  }
  return {};
}

// A prediction would fail, after the run that it is compared with.
Result<void> check_fit(const RunInput& input, const Case& world, const Calibration& calibration) {
  const Result<Case> fits = with_calibration(world, calibration);
  return fits.ok() ? Result<void>() : Error{input.name + ": " + fits.error().message};
}

ExitStatus report(const Options& options, const Validation& validation, Terminal& terminal) {
  const std::string json = to_text(validation_to_json(validation), JsonLayout::kReadable) + "\n";
  terminal.out << (options.flag("json") ? json : describe_validation(validation));
  if (const std::optional<std::string> path = options.text("out")) {
    if (Result<void> written = write_file_atomically(*path, json); !written.ok()) {
      terminal.err << "rrfp validate: " << written.error().message << "\n";
      return ExitStatus::kWrong;
    }
  }
  return has_figures(validation) ? ExitStatus::kDone : ExitStatus::kFailed;
}

// What is there before the processes of a job meet.
struct ReadyValidation {
  JobInputs inputs;
  RunInput input;
  int iterations = 0;
  std::vector<int> policies;
  std::optional<CalibrationPlan> plan;
  std::optional<Calibration> given;
};

Result<std::vector<int>> validated_policies(const Options& options, const RunInput& input) {
  if (input.scenario) return policies_option(options, input.scenario->scenario());
  const Result<int> only = policy_of(options, input);
  return only.ok() ? std::vector<int>{*only} : Result<std::vector<int>>(only.error());
}

// As `rrfp calibrate` does, so that both measure the same; but of those asked for.
int calibrated_policy(const Options& options, const RunInput& input,
                      const std::vector<int>& policies) {
  const bool chosen = options.text(kPolicyRow.name).has_value();
  return input.scenario && !chosen ? input.scenario->scenario().baseline : policies.front();
}

// A policy that cannot run would be found after the runs of those before it.
Result<void> check_policies(const RunInput& input, const std::vector<int>& policies) {
  for (const int policy : policies) {
    const Result<PreparedRun> prepared = input.prepare(policy, 1);
    if (!prepared.ok()) return prepared.error();
  }
  return {};
}

Result<ReadyValidation> get_ready(const Options& options) {
  ReadyValidation ready;
  Result<RunInput> input = read_run_input(options);
  if (!input.ok()) return input.error();
  const Result<std::int64_t> iterations = options.integer_or("iterations", 20, 1, kMostIterations);
  if (!iterations.ok()) return iterations.error();
  ready.iterations = static_cast<int>(*iterations);
  Result<std::vector<int>> policies = validated_policies(options, *input);
  if (!policies.ok()) return policies.error();
  ready.policies = std::move(*policies);
  if (Result<void> can_run = check_policies(*input, ready.policies); !can_run.ok()) {
    return can_run.error();
  }
  Result<CalibrationPlan> plan =
      plan_calibration(*input, calibrated_policy(options, *input, ready.policies), options);
  if (!plan.ok()) return plan.error();
  ready.inputs = {plan->grid(), {input->content}};
  Result<std::optional<Calibration>> given = calibration_of(options);
  if (!given.ok()) return given.error();
  if (*given) {
    if (Result<void> fits = check_fit(*input, plan->world(), **given); !fits.ok()) {
      return fits.error();
    }
    ready.inputs.files.push_back(
        {"--calibration of",
         describe_content(to_text(calibration_to_json(**given), JsonLayout::kReadable))});
  }
  ready.plan = std::move(*plan);
  ready.given = std::move(*given);
  ready.input = std::move(*input);
  return ready;
}

Result<ExitStatus> take_part(const Options& options, Job& job, ReadyValidation& ready,
                             Terminal& terminal) {
  if (Result<void> can = check_outputs(job, options, {"out"}); !can.ok()) return can.error();
  const RunInput& input = ready.input;
  if (job.speaks()) {
    tell_scenario(input, std::nullopt, options, terminal);
    tell_empty_messages(input, options, terminal);
  }
  Validation validation;
  validation.name = input.title();
  validation.transport = job.name();
  validation.mean_task_ns = mean_task_ns(ready.plan->world());
  RunOutcome outcome;
  if (ready.given) {
    validation.calibration = *ready.given;
  } else {
    const Result<Calibration> made =
        run_calibration(job, *ready.plan, "rrfp validate: calibration", outcome, terminal);
    if (!made.ok()) return made.error();
    validation.calibration = *made;
  }
  for (const int policy : ready.policies) {
    if (outcome.end != RunEnd::kCompleted) break;
    const Result<void> validated =
        validate_policy(job, input, policy, ready.iterations, ready.plan->device, options,
                        validation, outcome, terminal);
    if (!validated.ok()) return validated.error();
  }
  ExitStatus status = ExitStatus::kDone;
  if (outcome.end != RunEnd::kCompleted) {
    status = report_failure(outcome, "validate", terminal);
  } else if (job.speaks()) {
    status = report(options, validation, terminal);
  }
  terminal.out << std::flush;
  job.close(outcome, static_cast<int>(status));
  return status;
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  return run_as_job(
      "validate", options, terminal, [&] { return get_ready(options); },
      [&](Job& job, ReadyValidation& ready) { return take_part(options, job, ready, terminal); });
}

}  // namespace

extern const Command kValidateCommand;
const Command kValidateCommand = {
    "validate",
    "runs every policy in real time and in the simulator, and compares the two",
    "FILE",
    "FILE is a scenario (rrfp.scenario/1) or a case. Model error: the simulator, fed with a run's\n"
    "own task and message times, against the run. Prediction: the simulator, fed with the "
    "scenario\n"
    "and a calibration made in the same job, against the run; void on a noisy machine, and where\n"
    "tasks take less than what the executor adds to each. Iterations in which a thread stalled "
    "for\n"
    "over 2 ms, and over 2 % of the iteration, are dropped and counted; where fewer than a "
    "quarter\n"
    "are left the status is 1. The decisions of every run are made again from the calls that led "
    "to\n"
    "them. Under a window and a memory budget one of the two may block and the other not, for\n"
    "messages come in another order.",
    "rrfp validate experiments/validate-8.json",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
