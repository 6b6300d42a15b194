// rrfp info: what is in a recorded job.
#include <array>
#include <ostream>

#include "experiments/command.h"
#include "experiments/input_file.h"
#include "experiments/trace_progress.h"
#include "experiments/trace_report.h"
#include "experiments/trace_summary.h"
#include "traces/trace_source.h"

namespace rrfp {

namespace {

constexpr std::array<OptionRow, 0> kOptions = {};

std::string_view name_of(TraceFormat format) {
  return format == TraceFormat::kNative ? kTraceSchema : "straggler-csv, imported";
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const Result<std::string> path = options.operand("TRACE");
  if (!path.ok()) return path.error();
  std::string text;
  {
    TraceProgress progress(terminal.err, *path, 1);
    const Result<OpenedTrace> trace = open_input_trace(*path, progress.callback());
    if (!trace.ok()) return trace.error();
    const Result<TraceSummary> summary = summarize_trace(*trace->source);
    if (!summary.ok()) return summary.error();
    text = *path + ": " + std::string(name_of(trace->format)) + "\n" +
           describe_summary(trace->source->header(), *summary);
    text += trace->report ? "\n" + describe_import(*trace->report)
                          : describe_dropped(trace->source->dropped(), "record");
  }
  terminal.out << text;
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kInfoCommand;
const Command kInfoCommand = {
    "info",
    "says what a recorded job holds: ranks, iterations, lengths, gaps, clocks, oddities",
    "TRACE",
    "TRACE is a native trace (rrfp.trace/1), plain, .gz or .zst, or a straggler CSV.\n"
    "A record that is well formed but cannot be is dropped; each reason is counted and listed\n"
    "with the first place where it was met.",
    "rrfp info experiments/noisy-1f1b.trace.jsonl.zst",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
