// rrfp import: other people's recordings and schedules, made into files of
// this project.
#include <algorithm>
#include <array>
#include <ostream>

#include "experiments/command.h"
#include "experiments/input_file.h"
#include "experiments/torch_import.h"
#include "experiments/trace_progress.h"
#include "experiments/trace_report.h"
#include "experiments/trace_summary.h"
#include "traces/atomic_file.h"
#include "traces/megatron_log.h"
#include "traces/native_trace_writer.h"
#include "traces/straggler_csv.h"
#include "traces/trace_source.h"

namespace rrfp {

namespace {

constexpr std::array<std::string_view, 3> kFormats = {"straggler-csv", "torch-csv", "megatron-log"};
constexpr std::array<std::string_view, 2> kBMeansWords = {"full", "input"};

constexpr std::array kOptions = {
    OptionRow{"from", "FORMAT", "straggler-csv, torch-csv or megatron-log"},
    OptionRow{"b-means", "WORD", "torch-csv: B is full (default) or input"},
    kFileLimitRow,
};

Result<void> write_trace(const std::string& path, const TraceHeader& header,
                         const std::vector<TraceRecord>& records) {
  Result<NativeTraceWriter> writer = NativeTraceWriter::create(path, header);
  if (!writer.ok()) return writer.error();
  for (const TraceRecord& record : records) writer->add(record);
  return writer->finish();
}

Result<std::string> import_stragglers(const std::string& in, const std::string& out,
                                      Terminal& terminal) {
  TraceProgress progress(terminal.err, in, 1);
  const Result<StragglerImport> imported = import_straggler_csv(in, progress.callback());
  if (!imported.ok()) return imported.error();
  const Result<void> written = write_trace(out, imported->header, imported->records);
  if (!written.ok()) return written.error();
  return describe_shape(imported->header) + describe_import(imported->report);
}

Result<std::string> import_log(const std::string& in, const std::string& out, Terminal& terminal) {
  TraceProgress progress(terminal.err, in, 1);
  Result<MegatronLogImport> imported = import_megatron_log(in, progress.callback());
  if (!imported.ok()) return imported.error();
  const Result<void> written = write_trace(out, imported->header, imported->records);
  if (!written.ok()) return written.error();
  const auto source = hold_trace(std::move(imported->header), std::move(imported->records));
  const Result<TraceSummary> summary = summarize_trace(*source);
  if (!summary.ok()) return summary.error();
  return "used " + counted(imported->iterations, "iteration") + " and " +
         counted(imported->timers, "timer") + " of " + counted(imported->lines, "line") + "\n" +
         describe_spans(*summary) + describe_dropped(imported->dropped, "line");
}

Result<std::string> import_torch(const std::string& in, const std::string& out,
                                 const Options& options) {
  const Result<std::size_t> limit = file_limit(options);
  if (!limit.ok()) return limit.error();
  const Result<std::string> b_means = options.word_or("b-means", "full", kBMeansWords);
  if (!b_means.ok()) return b_means.error();
  TorchCsvOptions csv;
  csv.limit_bytes = *limit;
  csv.b_means = *b_means == "full" ? BMeans::kFull : BMeans::kInput;
  const Result<std::string> text = read_input_text(in, *limit);
  if (!text.ok()) return text.error();
  const Result<TorchImport> imported =
      import_torch_csv(*text, in == "-" ? "standard input" : in, csv, out.ends_with(".json"));
  if (!imported.ok()) return imported.error();
  const Result<void> written = write_file_atomically(out, imported->text);
  if (!written.ok()) return written.error();
  return imported->report;
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const std::optional<std::string> from = options.text("from");
  if (!from) return Error{"--from is missing; expected straggler-csv, torch-csv or megatron-log"};
  if (std::find(kFormats.begin(), kFormats.end(), *from) == kFormats.end()) {
    return not_one_of("--from", *from, kFormats);
  }
  if (options.operands().size() != 2) {
    return Error{"expected two files, IN and OUT; found " +
                 std::to_string(options.operands().size())};
  }
  if (options.text("b-means") && *from != "torch-csv") {
    return Error{"--b-means is about torch-csv; found --from " + *from};
  }
  const std::string& in = options.operands()[0];
  const std::string& out = options.operands()[1];
  const Result<std::string> report = *from == "straggler-csv" ? import_stragglers(in, out, terminal)
                                     : *from == "megatron-log" ? import_log(in, out, terminal)
                                                               : import_torch(in, out, options);
  if (!report.ok()) return report.error();
  terminal.out << out << " from " << in << "\n" << *report;
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kImportCommand;
const Command kImportCommand = {
    "import",
    "makes a recording or schedule of another program into a file of this one",
    "IN OUT",
    "Says what was used, what was dropped and why.\n"
    "straggler-csv  operation records of a Megatron job (dp_rank,stage,rank,step,optype,...)\n"
    "               -> a native trace: `rrfp info`, `rrfp replay`\n"
    "megatron-log   iteration times and timers of a Megatron-LM text log -> a native trace of\n"
    "               sums per iteration: `rrfp info`\n"
    "torch-csv      a schedule of torch.distributed.pipelining, checked. OUT that ends in .json\n"
    "               -> a case at unit costs for `rrfp simulate`; else -> the same schedule as\n"
    "               plain compute cells, for `\"hint\": {\"csv\": ...}` of a scenario\n"
    "A native trace is compressed where OUT ends in .gz or .zst.",
    "rrfp import --from straggler-csv trace.csv.gz trace.jsonl.zst",
    kOptions,
    2,
    run,
};

}  // namespace rrfp
