// rrfp sweep: compares the policies of a scenario over a grid and many iterations.
#include <array>
#include <ostream>

#include "experiments/calibration_report.h"
#include "experiments/command.h"
#include "experiments/input_file.h"
#include "experiments/interrupt.h"
#include "experiments/parallel_for.h"
#include "experiments/progress_bar.h"
#include "experiments/sweep.h"
#include "experiments/sweep_files.h"
#include "experiments/sweep_report.h"
#include "experiments/sweep_summary.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr std::array kOptions = {
    OptionRow{"out", "DIR", "write runs.csv, summary.csv, summary.json and the resolved scenario"},
    OptionRow{"resume", "", "take up the sweep in --out where it was cut short"},
    OptionRow{"force", "", "replace what another scenario has left in --out"},
    OptionRow{"iterations", "N", "iterations of each point, instead of the scenario's"},
    OptionRow{"threads", "N", "threads (default: one per core); the results do not depend on it"},
    OptionRow{"json", "", "print summary.json instead of tables"},
    kCalibrationRow,
    kFileLimitRow,
};

Result<Sweep> plan(const std::string& path, const Options& options) {
  const Result<std::int64_t> iterations = options.integer_or("iterations", 0, 1, 10'000'000);
  if (!iterations.ok()) return iterations.error();
  const Result<std::size_t> limit = file_limit(options);
  if (!limit.ok()) return limit.error();
  constexpr std::array kTaken = {FileKind::kScenario};
  const Result<InputFile> input = read_input(path, *limit, kTaken);
  if (!input.ok()) return input.error();
  Result<Sweep> sweep = plan_sweep(input->document, static_cast<int>(*iterations));
  if (!sweep.ok()) return sweep;
  Result<std::optional<Calibration>> calibration = calibration_of(options);
  if (!calibration.ok()) return calibration.error();
  sweep->calibration = std::move(*calibration);
  return sweep;
}

bool any_blocked(const std::vector<std::vector<PolicySummary>>& summaries) {
  for (const std::vector<PolicySummary>& point : summaries) {
    for (const PolicySummary& summary : point) {
      if (summary.blocked > 0) return true;
    }
  }
  return false;
}

// Returns whether it was interrupted.
Result<bool> run_pieces(Sweep& sweep, int threads, const InterruptGuard& interrupt,
                        Terminal& terminal) {
  ProgressBar progress(terminal.err, is_terminal_stderr(), pieces_left(sweep));
  SweepControl control;
  control.threads = threads;
  control.interrupted = [&interrupt] { return interrupt.requested(); };
  control.on_piece_done = [&progress] { progress.add(); };
  if (Result<void> done = run_sweep(sweep, control); !done.ok()) return done.error();
  return interrupt.requested() && !sweep.complete();
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const Result<std::string> path = options.operand("FILE (a scenario)");
  if (!path.ok()) return path.error();
  const std::optional<std::string> out = options.text("out");
  if (options.flag("resume") && !out) return Error{"--resume needs --out, the folder to resume"};
  if (options.flag("force") && !out) return Error{"--force needs --out, the folder to write"};
  if (options.flag("force") && options.flag("resume")) {
    return Error{"--resume goes on with what --force replaces; give one of them"};
  }
  const Result<std::int64_t> threads = options.integer_or("threads", usual_threads(), 1, 4096);
  if (!threads.ok()) return threads.error();
  const InterruptGuard interrupt;
  Result<Sweep> sweep = plan(*path, options);
  if (!sweep.ok()) return sweep.error();
  if (out && !options.flag("resume")) {
    const NamedFile inputs[] = {{"FILE", *path},
                                {"--calibration", options.text_or("calibration", "")}};
    const Result<void> apart = check_sweep_inputs(*out, *sweep, inputs);
    if (!apart.ok()) return apart.error();
  }
  if (options.flag("resume")) {
    if (Result<void> resumed = resume_sweep(*out, *sweep); !resumed.ok()) return resumed.error();
  } else if (out) {
    if (!options.flag("force")) {
      if (Result<void> same = check_sweep_folder(*out, *sweep); !same.ok()) return same.error();
    }
    if (Result<void> made = make_sweep_folder(*out); !made.ok()) return made.error();
  }

  const Result<bool> interrupted =
      run_pieces(*sweep, static_cast<int>(*threads), interrupt, terminal);
  if (!interrupted.ok()) return Error{*path + ": " + interrupted.error().message};
  std::vector<std::vector<PolicySummary>> summaries;
  for (const SweepPoint& point : sweep->points) summaries.push_back(summarize(point));
  if (out) {
    const Result<void> written = write_sweep(*out, *sweep, summaries);
    if (!written.ok()) return written.error();
  }
  if (options.flag("json")) {
    terminal.out << to_text(summary_to_json(*sweep, summaries), JsonLayout::kReadable) << "\n";
  } else {
    terminal.out << calibration_note(options, sweep->calibration)
                 << describe_sweep(*sweep, summaries);
  }
  if (*interrupted) {
    terminal.err << "rrfp sweep: interrupted; "
                 << (out ? "what was done is kept in " + *out + ", and --resume goes on from there"
                         : "what was done is shown and kept nowhere; --out DIR keeps it, for "
                           "--resume to go on from there")
                 << "\n";
    return ExitStatus::kInterrupted;
  }
  return any_blocked(summaries) ? ExitStatus::kBlocked : ExitStatus::kDone;
}

}  // namespace

extern const Command kSweepCommand;
const Command kSweepCommand = {
    "sweep",
    "compares the policies of a scenario over a grid and many iterations",
    "FILE",
    "FILE is a scenario (rrfp.scenario/1); all its policies meet the same worlds.\n"
    "Speed-up: mean of the baseline over mean of the policy, with a paired bootstrap interval.\n"
    "Over fixed at its memory: the same over the fastest fixed order that needs no more memory.\n"
    "--calibration C, of `rrfp calibrate --out C`, runs them as that machine is expected to.\n"
    "Ctrl-C shows what is done, keeps it in --out, and ends with status 130. A folder with the\n"
    "results of another scenario, or of other iterations, is written only with --force.",
    "rrfp sweep experiments/zb-1.5b.json --out out/zb-1.5b",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
