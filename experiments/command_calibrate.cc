// rrfp calibrate: measures what this machine adds to tasks and messages, and
// how fast its links are.
#include <array>
#include <ostream>

#include "executor/calibration_file.h"
#include "experiments/calibration_report.h"
#include "experiments/calibration_run.h"
#include "experiments/input_file.h"
#include "experiments/job_command.h"

namespace rrfp {

namespace {

constexpr std::array kOptions = {
    OptionRow{"out", "FILE", "write the calibration (rrfp.calibration/1)",
              OptionRow::Alike::kWhetherGiven, OptionRow::File::kReplaced},
    kPolicyRow,
    kPointRow,
    kTransportRow,
    kDeviceRow,
    kGpuRow,
    kPayloadRow,
    kPatienceRow,
    kAgreeRow,
    kFileLimitRow,
};

// What is there before the processes of a job meet.
struct ReadyCalibration {
  JobInputs inputs;
  RunInput input;
  int policy = 0;
  CalibrationPlan plan;
};

Result<ReadyCalibration> get_ready(const Options& options) {
  Result<RunInput> input = read_run_input(options);
  if (!input.ok()) return input.error();
  const Result<int> policy = policy_of(options, *input);
  if (!policy.ok()) return policy.error();
  Result<CalibrationPlan> plan = plan_calibration(*input, *policy, options);
  if (!plan.ok()) return plan.error();
  JobInputs inputs = {plan->grid(), {input->content}};
  return ReadyCalibration{std::move(inputs), std::move(*input), *policy, std::move(*plan)};
}

Result<ExitStatus> take_part(const Options& options, Job& job, ReadyCalibration& ready,
                             Terminal& terminal) {
  if (Result<void> can = check_outputs(job, options, {"out"}); !can.ok()) return can.error();
  if (job.speaks()) terminal.out << head_of(ready.input, ready.policy);
  RunOutcome outcome;
  const Result<Calibration> calibration =
      run_calibration(job, ready.plan, "rrfp calibrate", outcome, terminal);
  if (!calibration.ok()) return calibration.error();
  ExitStatus status = ExitStatus::kDone;
  if (outcome.end != RunEnd::kCompleted) {
    status = report_failure(outcome, "calibrate", terminal);
  } else if (job.speaks()) {
    terminal.out << describe_calibration(*calibration, job.name());
    const std::string reason = why_void(*calibration, mean_task_ns(ready.plan.world()));
    if (!reason.empty()) terminal.out << "void: " << reason << "\n";
    if (const std::optional<std::string> path = options.text("out")) {
      if (Result<void> written = write_calibration_file(*path, *calibration); !written.ok()) {
        terminal.err << "rrfp calibrate: " << written.error().message << "\n";
        status = ExitStatus::kWrong;
      }
    }
  }
  terminal.out << std::flush;
  job.close(outcome, static_cast<int>(status));
  return status;
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  return run_as_job(
      "calibrate", options, terminal, [&] { return get_ready(options); },
      [&](Job& job, ReadyCalibration& ready) { return take_part(options, job, ready, terminal); });
}

}  // namespace

extern const Command kCalibrateCommand;
const Command kCalibrateCommand = {
    "calibrate",
    "measures what this machine adds to the tasks and messages of a run",
    "FILE",
    "FILE is a case or a scenario; one policy is run for five iterations. With --device\n"
    "synthetic the device is measured before: what a launch, a flag and an empty kernel take, the\n"
    "latency and speed of the link behind each edge, and how partitions slow each other. Under\n"
    "mpirun, srun or torchrun that is measured between the processes, as `rrfp run` has them. What "
    "is\n"
    "written `rrfp simulate` and `rrfp sweep` take with --calibration, and so does validate.",
    "rrfp calibrate experiments/noisy-1f1b.json --out /tmp/calibration.json",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
