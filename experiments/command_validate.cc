// rrfp validate: runs both worlds, policy by policy, and compares them.
#include <array>
#include <ostream>

#include "experiments/calibration_run.h"
#include "experiments/input_file.h"
#include "experiments/validation.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr std::array kOptions = {
    OptionRow{"iterations", "N", "of each policy (default 20)"},
    OptionRow{"calibration", "FILE", "use this calibration instead of one made in this job"},
    kTransportRow,
    kDeviceRow,
    OptionRow{"json", "", "print every iteration as JSON instead of the table"},
    kPayloadRow,
    kPatienceRow,
    kFileLimitRow,
};

class ValidatingSink final : public IterationSink {
 public:
  Result<void> on_iteration(IterationRecord record) override {
    iterations.push_back(std::move(record));
    return {};
  }
  std::vector<IterationRecord> iterations;
};

// Leaves the job as a run that failed, or that did not.
ExitStatus leave(Job& job, const RunOutcome& outcome, ExitStatus status, Terminal& terminal) {
  terminal.out << std::flush;
  job.close(outcome, static_cast<int>(status));
  return status;
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const Result<RunInput> input = read_run_input(options);
  if (!input.ok()) return input.error();
  const Result<std::int64_t> iterations = options.integer_or("iterations", 20, 1, kMostIterations);
  if (!iterations.ok()) return iterations.error();
  const Result<DeviceChoice> device = device_of(options);
  if (!device.ok()) return device.error();
  const Result<TransportKind> kind = transport_of(options);
  if (!kind.ok()) return kind.error();
  Calibration calibration;
  const std::optional<std::string> given = options.text("calibration");
  if (given) {
    const Result<Calibration> read = read_calibration_file(*given);
    if (!read.ok()) return read.error();
    calibration = *read;
  }
  Result<Job> job = Job::open(*kind);
  if (!job.ok()) return job.error();
  RunOutcome outcome;
  if (!given) {
    const Result<Calibration> made = run_calibration(*job, *input, 0, options, outcome);
    if (!made.ok()) return made.error();
    calibration = *made;
  }
  std::vector<ValidatedPolicy> policies;
  for (int policy = 0; policy < input->policies() && outcome.end == RunEnd::kCompleted; ++policy) {
    Result<PreparedRun> prepared = input->prepare(policy, static_cast<int>(*iterations));
    if (!prepared.ok()) return prepared.error();
    if (Result<void> tuned = tune(options, *prepared->plan); !tuned.ok()) return tuned.error();
    const Result<Equipment> equipment = equip(*device, prepared->plan->grid, job->over_mpi());
    if (!equipment.ok()) return equipment.error();
    auto sink = std::make_shared<ValidatingSink>();
    const Result<RunOutcome> ran =
        job->run(*prepared, equipment->device, sink, equipment->transport);
    if (!ran.ok()) return ran.error();
    outcome = *ran;
    policies.emplace_back();
    policies.back().name = input->policy_name(policy);
    for (const IterationRecord& record : sink->iterations) {
      Result<void> added = add_iteration(*prepared, record, calibration, policies.back());
      if (!added.ok()) return added.error();
    }
  }
  if (outcome.end != RunEnd::kCompleted) {
    const ExitStatus status = report_failure(outcome, "validate", terminal);
    return leave(*job, outcome, status, terminal);
  }
  if (job->speaks() && options.flag("json")) {
    terminal.out << to_text(validation_to_json(policies, calibration), JsonLayout::kReadable)
                 << "\n";
  } else if (job->speaks()) {
    terminal.out << input->name << " over " << job->name() << "\n"
                 << describe_validation(policies, calibration);
  }
  return leave(*job, outcome, ExitStatus::kDone, terminal);
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
    "and a calibration made in the same job, against the run; void where timers are seen late.\n"
    "Iterations in which a thread stalled for over 2 ms are dropped and counted.",
    "rrfp validate experiments/validate-8.json",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
