// rrfp fit: from a recorded job to a scenario that draws jobs like it.
#include <array>
#include <filesystem>
#include <ostream>

#include "experiments/command.h"
#include "experiments/fit_report.h"
#include "experiments/input_file.h"
#include "experiments/output_file.h"
#include "experiments/parallel_for.h"
#include "experiments/progress_bar.h"
#include "experiments/trace_progress.h"
#include "traces/atomic_file.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr std::int64_t kCheckIterations = 1000;

constexpr std::array kOptions = {
    OptionRow{"out", "FILE", "write the scenario to FILE, which must not exist"},
    OptionRow{"split-fraction", "F",
              "assume that W is this share of each recorded B (default: no split)"},
    OptionRow{"iterations", "N", "iterations that are drawn to check the fit (default 1000)"},
    OptionRow{"threads", "N", "threads (default: one per core); the results do not depend on it"},
    OptionRow{"json", "", "print the report and the scenario as rrfp.fit/1"},
};

Error in_file(const std::string& path, const Error& error) {
  return error.message.starts_with(path) ? error : Error{path + ": " + error.message};
}

/// The name of the file without its folder and endings.
std::string job_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending : {".gz", ".zst", ".csv", ".jsonl", ".trace"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) {
      name.resize(name.size() - ending.size());
    }
  }
  return "fitted from " + name;
}

Result<FitObservations> observe_file(const std::string& path, OpenedTrace* opened,
                                     Terminal& terminal) {
  TraceProgress progress(terminal.err, path, 1);
  Result<OpenedTrace> trace = open_input_trace(path, progress.callback());
  if (!trace.ok()) return trace.error();
  *opened = *std::move(trace);
  return observe(*opened->source);
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const Result<std::string> path = options.operand("TRACE");
  if (!path.ok()) return path.error();
  const Result<std::int64_t> iterations =
      options.integer_or("iterations", kCheckIterations, 2, 1'000'000);
  if (!iterations.ok()) return iterations.error();
  const Result<std::int64_t> threads = options.integer_or("threads", usual_threads(), 1, 4096);
  if (!threads.ok()) return threads.error();
  const Result<std::optional<double>> split = options.number("split-fraction", 0);
  if (!split.ok()) return split.error();
  if (*split && !(**split > 0 && **split < 1)) {
    return Error{"--split-fraction: expected a share of B above 0 and below 1"};
  }
  const std::optional<std::string> out = options.text("out");
  if (out) {
    if (Result<void> free = check_new_file(*out, "--out"); !free.ok()) return free.error();
  }

  OpenedTrace trace;
  Result<FitObservations> observed = observe_file(*path, &trace, terminal);
  if (!observed.ok()) return in_file(*path, observed.error());
  Result<VarianceComponents> components = decompose_variance(observed->durations);
  if (!components.ok()) return in_file(*path, components.error());
  if (*split && observed->program.split_backward()) {
    return in_file(*path,
                   Error{"--split-fraction: its backwards are recorded as I and W; leave the "
                         "option out"});
  }
  FittedScenario fitted = fit_scenario(job_name(*path), *observed, *components, *split);
  const Result<FitCheck> check = [&] {
    ProgressBar progress(terminal.err, is_terminal_stderr(), static_cast<std::size_t>(*iterations));
    return check_fit(*observed, *components, fitted.scenario, static_cast<int>(*iterations),
                     static_cast<int>(*threads), [&progress] { progress.add(); });
  }();
  if (!check.ok()) return in_file(*path, check.error());
  const FitReport report{*path, *std::move(observed), *std::move(components), std::move(fitted),
                         *check};
  if (out) {
    const Result<void> written = write_file_atomically(*out, fitted_scenario_text(report));
    if (!written.ok()) return written.error();
  }
  if (options.flag("json")) {
    terminal.out << to_text(fit_to_json(report), JsonLayout::kReadable) << "\n";
    return ExitStatus::kDone;
  }
  terminal.out << describe_fit(trace.source->header(), report);
  if (out) {
    terminal.out << "\nwrote " << *out << "; `rrfp sweep " << *out << "` runs it\n";
  } else {
    terminal.out << "\n--out FILE writes the scenario\n";
  }
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kFitCommand;
const Command kFitCommand = {
    "fit",
    "makes a scenario from a recorded job: its means, its variability, its "
    "order",
    "TRACE",
    "TRACE is a native trace (rrfp.trace/1), plain, .gz or .zst, or a "
    "straggler CSV. The variance\n"
    "of durations is split into what microbatches, devices, replicas and "
    "iterations share and\n"
    "what is left; each becomes an entry of \"variability\" that draws from "
    "the quantiles of what\n"
    "was recorded. The report holds drawn durations and simulated steps "
    "against the recorded\n"
    "ones. At least 2 iterations of 2 microbatches are needed; 10 iterations "
    "or more are better.",
    "rrfp fit experiments/noisy-1f1b.trace.jsonl.zst --out fitted.json",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
