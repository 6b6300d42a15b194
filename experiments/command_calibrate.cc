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
              OptionRow::Alike::kWhetherGiven},
    kPointRow,
    kTransportRow,
    kDeviceRow,
    kGpuRow,
    kPayloadRow,
    kPatienceRow,
    kFileLimitRow,
};

// What is there before the processes of a job meet.
struct ReadyCalibration {
  JobInputs inputs;
  RunInput input;
};

Result<ReadyCalibration> get_ready(const Options& options) {
  Result<RunInput> input = read_run_input(options);
  if (!input.ok()) return input.error();
  const Result<Grid> grid = check_calibration(*input, 0, options);
  if (!grid.ok()) return grid.error();
  JobInputs inputs = {*grid, {input->content}};
  return ReadyCalibration{std::move(inputs), std::move(*input)};
}

Result<ExitStatus> take_part(const Options& options, Job& job, const RunInput& input,
                             Terminal& terminal) {
  if (Result<void> can = check_outputs(job, options, {"out"}); !can.ok()) return can.error();
  RunOutcome outcome;
  const Result<Calibration> calibration = run_calibration(job, input, 0, options, outcome);
  if (!calibration.ok()) return calibration.error();
  ExitStatus status = ExitStatus::kDone;
  if (outcome.end != RunEnd::kCompleted) {
    status = report_failure(outcome, "calibrate", terminal);
  } else if (job.speaks()) {
    terminal.out << input.note << describe_calibration(*calibration, job.name());
    const Result<PreparedRun> prepared = input.prepare(0, 1);
    const std::string reason = prepared.ok()
                                   ? why_void(*calibration, mean_task_ns(prepared->cases[0][0]))
                                   : why_void(*calibration);
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
      [&](Job& job, ReadyCalibration& ready) {
        return take_part(options, job, ready.input, terminal);
      });
}

}  // namespace

extern const Command kCalibrateCommand;
const Command kCalibrateCommand = {
    "calibrate",
    "measures what this machine adds to the tasks and messages of a run",
    "FILE",
    "FILE is a case or a scenario; its first policy is run for five iterations. With --device\n"
    "synthetic the device is measured before: what a launch, a flag and an empty kernel take, the\n"
    "latency and speed of the link behind each edge, and how partitions slow each other. Under\n"
    "mpirun, srun or torchrun that is measured between the processes, as `rrfp run` has them. What "
    "is\n"
    "written `rrfp simulate` and `rrfp sweep` take with --calibration, and so does validate.",
    "rrfp calibrate tests/cases/three-chunks.json --out /tmp/calibration.json",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
