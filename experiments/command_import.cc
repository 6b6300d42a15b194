// rrfp import: other people's recordings and schedules, made into files of
// this project.
#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "experiments/command.h"
#include "experiments/input_file.h"
#include "experiments/output_file.h"
#include "experiments/profile_report.h"
#include "experiments/text_list.h"
#include "experiments/torch_import.h"
#include "experiments/trace_progress.h"
#include "experiments/trace_report.h"
#include "experiments/trace_summary.h"
#include "traces/atomic_file.h"
#include "traces/megatron_log.h"
#include "traces/native_trace_writer.h"
#include "traces/profile_import.h"
#include "traces/straggler_csv.h"
#include "traces/trace_source.h"

namespace rrfp {

namespace {

constexpr std::array<std::string_view, 5> kFormats = {"kineto", "nsys", "straggler-csv",
                                                      "torch-csv", "megatron-log"};
constexpr std::array<std::string_view, 2> kBMeansWords = {"full", "input"};

constexpr std::array kOptions = {
    OptionRow{"from", "FORMAT", "kineto, nsys, straggler-csv, torch-csv or megatron-log"},
    OptionRow{"b-means", "WORD", "profiles, torch-csv: B is full (default) or input"},
    OptionRow{"forward", "REGEX", "profiles: annotations that are an F (see below)"},
    OptionRow{"backward", "REGEX", "profiles: that are a B"},
    OptionRow{"input-gradient", "REGEX", "profiles: that are an I"},
    OptionRow{"weight-gradient", "REGEX", "profiles: that are a W"},
    OptionRow{"step", "REGEX", "profiles: that are an iteration; group 1 is its number"},
    OptionRow{"microbatches", "M", "profiles: of an iteration, where nothing in the file tells"},
    OptionRow{"dp", "D", "profiles: replicas (default: as stages or messages tell)"},
    OptionRow{"tp", "T", "profiles: ranks of one tensor-parallel group (default: the same)"},
    OptionRow{"allow-missing", "", "kineto: go on where ranks of the job have no file"},
    kFileLimitRow,
};

constexpr std::array<std::string_view, 8> kProfileOptions = {
    "forward", "backward", "input-gradient", "weight-gradient", "step", "microbatches", "dp", "tp"};

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

Result<ProfileImportOptions> profile_options(const Options& options) {
  ProfileImportOptions profile;
  const Result<std::string> b_means = options.word_or("b-means", "full", kBMeansWords);
  if (!b_means.ok()) return b_means.error();
  profile.b_means = *b_means == "full" ? BMeans::kFull : BMeans::kInput;
  profile.patterns.forward = options.text_or("forward", "");
  profile.patterns.backward = options.text_or("backward", "");
  profile.patterns.input_gradient = options.text_or("input-gradient", "");
  profile.patterns.weight_gradient = options.text_or("weight-gradient", "");
  profile.patterns.step = options.text_or("step", "");
  constexpr std::int64_t kMost = 1 << 16;
  const auto microbatches = options.integer("microbatches", 1, kMost);
  const auto replicas = options.integer("dp", 1, kMost);
  const auto lanes = options.integer("tp", 1, 1 << 12);
  for (const auto* number : {&microbatches, &replicas, &lanes}) {
    if (!number->ok()) return number->error();
  }
  if (microbatches->has_value()) profile.microbatches = static_cast<int>(**microbatches);
  if (replicas->has_value()) profile.layout.replicas = static_cast<int>(**replicas);
  if (lanes->has_value()) profile.layout.lanes = static_cast<int>(**lanes);
  return profile;
}

Result<std::string> import_profiles(const std::string& in, const std::string& out,
                                    const Options& options, Terminal& terminal) {
  Result<ProfileImportOptions> profile = profile_options(options);
  if (!profile.ok()) return profile.error();
  // Whoever gives one file knows that it is one.
  std::error_code ignored;
  profile->layout.needs_all_ranks =
      !options.flag("allow-missing") && std::filesystem::is_directory(in, ignored);
  TraceProgress progress(terminal.err, in, 1);
  const auto import = options.text("from") == "kineto" ? import_kineto : import_nsys;
  Result<ProfileImport> imported = import(in, *profile, progress.callback());
  if (!imported.ok()) return imported.error();
  imported->header.versions = {{"from", "rrfp import, profiles of " + *options.text("from")}};
  const Result<void> written = write_trace(out, imported->header, imported->records);
  if (!written.ok()) return written.error();
  const std::string& missing = imported->report.missing_ranks;
  if (!missing.empty()) terminal.out << "note: " << missing << "\n";
  return describe_shape(imported->header) + describe_profile_import(imported->report);
}

// In the order of kFormats.
constexpr std::array kKinds = {FileKind::kProfile, FileKind::kNsysReport, FileKind::kStragglerCsv,
                               FileKind::kScheduleCsv, FileKind::kMegatronLog};
static_assert(kKinds.size() == kFormats.size());

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const std::optional<std::string> from = options.text("from");
  if (!from) {
    return Error{
        "--from is missing; expected kineto, nsys, straggler-csv, torch-csv or megatron-log"};
  }
  const auto format = std::find(kFormats.begin(), kFormats.end(), *from);
  if (format == kFormats.end()) {
    return not_one_of("--from", *from, kFormats);
  }
  if (options.operands().size() != 2) {
    return Error{"expected two files, IN and OUT; found " +
                 std::to_string(options.operands().size())};
  }
  const bool profiles = *from == "kineto" || *from == "nsys";
  if (options.text("b-means") && *from != "torch-csv" && !profiles) {
    return Error{"--b-means is about kineto, nsys and torch-csv; found --from " + *from};
  }
  for (const std::string_view name : kProfileOptions) {
    if (profiles || !options.text(name)) continue;
    return Error{"--" + std::string(name) + " is about kineto and nsys; found --from " + *from};
  }
  if (options.flag("allow-missing") && *from != "kineto") {
    return Error{"--allow-missing is about kineto; found --from " + *from};
  }
  const std::string& in = options.operands()[0];
  const std::string& out = options.operands()[1];
  if (Result<void> free = check_new_file(out, "OUT"); !free.ok()) return free.error();
  const Result<std::string> report = profiles ? import_profiles(in, out, options, terminal)
                                     : *from == "straggler-csv"
                                         ? import_stragglers(in, out, terminal)
                                     : *from == "megatron-log" ? import_log(in, out, terminal)
                                                               : import_torch(in, out, options);
  if (!report.ok()) {
    return explain_kind(report.error(), in, {&kKinds[format - kFormats.begin()], 1});
  }
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
    "kineto         a folder of PyTorch profiler files, one per rank, or one file -> a native\n"
    "               trace: `rrfp info`, `rrfp replay`. Tasks are PP:<action> annotations\n"
    "               (torch.distributed.pipelining), forward_step and backward_step (Megatron), or\n"
    "               those that the options name by a regular expression (RE2's syntax:\n"
    "               no lookarounds, no back references), found anywhere in the name: group 1 is\n"
    "               the microbatch, group 2 the stage, both may be absent. A rank is\n"
    "               (pipeline rank * D + replica) * T + tensor-parallel rank:\n"
    "                 rrfp import --from kineto --forward 'fwd mb(\\d+)' --backward 'bwd mb(\\d+)' "
    "\\\n"
    "                   --step 'iteration (\\d+)' --dp 2 profiles/ job.trace.jsonl.zst\n"
    "nsys           the same from Nsight Systems: files of `nsys export --type sqlite`, with NVTX\n"
    "               ranges for annotations\n"
    "straggler-csv  operation records of a Megatron job (dp_rank,stage,rank,step,optype,...)\n"
    "               -> a native trace: `rrfp info`, `rrfp replay`\n"
    "megatron-log   iteration times and timers of a Megatron-LM text log -> a native trace of\n"
    "               sums per iteration: `rrfp info`\n"
    "torch-csv      a schedule of torch.distributed.pipelining, checked. OUT that ends in .json\n"
    "               -> a case at unit costs for `rrfp simulate`; else -> the same schedule as\n"
    "               plain compute cells, for `\"hint\": {\"csv\": ...}` of a scenario\n"
    "A native trace is compressed where OUT ends in .gz or .zst. OUT must not exist.",
    "rrfp import --from kineto profiles/ job.trace.jsonl.zst",
    kOptions,
    2,
    run,
};

}  // namespace rrfp
