// rrfp export: a simulated scenario as a file that others record, or a recorded
// trace as one that others show.
#include <algorithm>
#include <array>
#include <limits>
#include <ostream>

#include "experiments/command.h"
#include "experiments/input_file.h"
#include "experiments/native_export.h"
#include "experiments/output_file.h"
#include "experiments/policy_option.h"
#include "experiments/progress_bar.h"
#include "experiments/scenario_point.h"
#include "experiments/text_list.h"
#include "experiments/trace_progress.h"
#include "experiments/trace_timeline.h"
#include "traces/atomic_file.h"
#include "traces/kineto_writer.h"
#include "traces/scenario_file.h"
#include "traces/scenario_resolve.h"

namespace rrfp {

namespace {

constexpr std::array<std::string_view, 3> kFormats = {"native-trace", "kineto", "perfetto"};
constexpr std::array<std::string_view, 2> kNameWords = {"torch", "megatron"};

constexpr std::array kOptions = {
    OptionRow{"to", "FORMAT", "native-trace (default), kineto or perfetto"},
    kPolicyRow,
    kPointRow,
    OptionRow{"names", "WORD", "kineto: torch (default, PP:3F0) or megatron (forward_step)"},
    OptionRow{"gzip", "", "kineto: compress the files"},
    OptionRow{"clock-skew-us", "US", "kineto: clocks of ranks are off by up to this (default 0)"},
    OptionRow{"base-shift-s", "S", "kineto: base times of ranks differ by this (default 0)"},
    OptionRow{"kernels", "N", "kineto: kernels of each task (default 2)"},
    OptionRow{"cpu-operators", "N", "kineto: operators on the CPU in each task (default 0)"},
    OptionRow{"iteration", "N", "perfetto: this iteration alone (default: all)"},
    kFileLimitRow,
};

constexpr std::array<std::string_view, 6> kKinetoOptions = {
    "names", "gzip", "clock-skew-us", "base-shift-s", "kernels", "cpu-operators"};

Result<KinetoWriterOptions> kineto_options(const Options& options) {
  KinetoWriterOptions kineto;
  const Result<std::string> names = options.word_or("names", "torch", kNameWords);
  if (!names.ok()) return names.error();
  kineto.names = *names == "torch" ? KinetoNames::kTorch : KinetoNames::kMegatron;
  kineto.gzip = options.flag("gzip");
  constexpr std::int64_t kMostSkewUs = 3'600'000'000;
  const Result<std::int64_t> skew_us = options.integer_or("clock-skew-us", 0, 0, kMostSkewUs);
  const Result<std::int64_t> shift_s = options.integer_or("base-shift-s", 0, 0, 100'000);
  const Result<std::int64_t> operators = options.integer_or("cpu-operators", 0, 0, 1'000'000);
  const Result<std::int64_t> kernels = options.integer_or("kernels", 2, 1, 1'000'000);
  for (const auto* number : {&skew_us, &shift_s, &operators, &kernels}) {
    if (!number->ok()) return number->error();
  }
  kineto.clock_skew_ns = *skew_us * 1000;
  kineto.base_shift_ns = *shift_s * 1'000'000'000;
  kineto.kernels = static_cast<int>(*kernels);
  kineto.cpu_operators = static_cast<int>(*operators);
  return kineto;
}

Result<ExitStatus> show_trace(const Options& options, Terminal& terminal) {
  const Result<std::optional<std::int64_t>> given =
      options.integer("iteration", 0, std::numeric_limits<int>::max());
  if (!given.ok()) return given.error();
  std::optional<int> only;
  if (*given) only = static_cast<int>(**given);
  const std::string& in = options.operands()[0];
  const std::string& out = options.operands()[1];
  Result<TraceTimeline> made = TraceTimeline();
  {
    TraceProgress progress(terminal.err, in, 1);
    const Result<OpenedTrace> trace = open_input_trace(in, progress.callback());
    if (!trace.ok()) return trace.error();
    made = trace_timeline(*trace->source, only);
    if (!made.ok()) return made.error();
  }
  if (Result<void> written = write_file_atomically(out, made->text); !written.ok()) {
    return written.error();
  }
  terminal.out << out << ": " << made->tasks << " tasks of "
               << counted(made->iterations, "iteration") << ", for ui.perfetto.dev\n";
  return ExitStatus::kDone;
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  if (options.operands().size() != 2) {
    return Error{"expected two files, FILE and OUT; found " +
                 std::to_string(options.operands().size())};
  }
  const Result<std::string> format = options.word_or("to", kFormats.front(), kFormats);
  if (!format.ok()) return format.error();
  const bool to_perfetto = *format == "perfetto";
  if (options.text("iteration") && !to_perfetto) return Error{"--iteration needs --to perfetto"};
  for (const std::string_view name : {"policy", "point"}) {
    if (!options.text(name) || !to_perfetto) continue;
    return Error{"--" + std::string(name) +
                 " chooses from a scenario; --to perfetto takes a trace"};
  }
  const bool to_kineto = *format == "kineto";
  for (const std::string_view name : kKinetoOptions) {
    const bool given = name == "gzip" ? options.flag(name) : options.text(name).has_value();
    if (given && !to_kineto) return Error{"--" + std::string(name) + " needs --to kineto"};
  }
  if (!to_kineto) {
    const Result<void> can = check_output_file(options.operands()[1], "OUT");
    if (!can.ok()) return can.error();
  }
  if (to_perfetto) return show_trace(options, terminal);
  const Result<KinetoWriterOptions> kineto = kineto_options(options);
  if (!kineto.ok()) return kineto.error();
  const std::string& in = options.operands()[0];
  const std::string& out = options.operands()[1];
  const Result<std::size_t> limit = file_limit(options);
  if (!limit.ok()) return limit.error();
  constexpr std::array kTaken = {FileKind::kScenario};
  const Result<InputFile> input = read_input(in, *limit, kTaken);
  if (!input.ok()) return input.error();
  Result<ScenarioAtPoint> read = read_scenario_at(input->document, options);
  if (!read.ok()) return read.error();
  Scenario* const scenario = &read->scenario;
  const Result<int> policy = policy_option(options, *scenario);
  if (!policy.ok()) return policy.error();
  const int iterations = scenario->iterations;
  const auto in_file = [&](const Error& error) {
    const bool named = error.message.starts_with(out) || error.message.starts_with(in);
    return named ? error : Error{input->document.file + ": " + error.message};
  };
  const Result<ScenarioResolver> resolver = ScenarioResolver::create(std::move(*scenario));
  if (!resolver.ok()) return in_file(resolver.error());
  terminal.out << policy_note(resolver->scenario(), *policy) << read->note << std::flush;
  {
    ProgressBar progress(terminal.err, is_terminal_stderr(), static_cast<std::size_t>(iterations));
    const auto done = [&progress] { progress.add(); };
    const Result<void> written = to_kineto ? export_kineto(*resolver, *policy, out, *kineto, done)
                                           : export_native_trace(*resolver, *policy, out, done);
    if (!written.ok()) return in_file(written.error());
  }
  terminal.out << out << ": " << counted(iterations, "iteration") << " of "
               << counted(resolver->scenario().data_parallel.replicas, "replica") << "\n";
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kExportCommand;
const Command kExportCommand = {
    "export",
    "simulates a scenario and writes the trace of it, or shows a recorded trace",
    "FILE OUT",
    "FILE is a scenario, of which is written what its job would have recorded; for perfetto it is\n"
    "a trace, of `rrfp run --trace` or of a job.\n"
    "native-trace  all iterations and replicas under one policy (rrfp.trace/1), for `rrfp info` "
    "and\n"
    "              `rrfp replay`. Compressed where OUT ends in .gz or .zst.\n"
    "kineto        the same as the PyTorch profiler would have recorded it: OUT is a folder of "
    "one\n"
    "              file per rank, for `rrfp import --from kineto` and whatever else reads them\n"
    "perfetto      a trace (rrfp.trace/1) as a timeline for ui.perfetto.dev or Chrome: tasks as "
    "they\n"
    "              started and ended, messages, collectives",
    "rrfp export experiments/noisy-1f1b.json noisy-1f1b.trace.jsonl.zst",
    kOptions,
    2,
    run,
};

}  // namespace rrfp
