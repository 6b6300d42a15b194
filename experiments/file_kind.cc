#include "experiments/file_kind.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "scheduler_core/task.h"
#include "traces/byte_source.h"

namespace rrfp {

namespace {

// A schema stands near the beginning of what this project writes.
constexpr std::size_t kHeadBytes = std::size_t{1} << 16;

struct KindRow {
  FileKind kind;
  std::string_view schema;  // empty: told by its looks
  std::string_view what;
  std::string_view use;  // ends the sentence "... is for"
};

constexpr std::array kKinds = {
    KindRow{FileKind::kCase, "rrfp.case/1", "a case",
            "`rrfp simulate`, `run`, `train`, `calibrate` and `validate`"},
    KindRow{FileKind::kScenario, "rrfp.scenario/1", "a scenario",
            "`rrfp simulate`, `sweep`, `run`, `train`, `calibrate`, `validate` and `export`"},
    KindRow{
        FileKind::kTrace, "rrfp.trace/1", "a recorded trace",
        "`rrfp info`, `replay`, `fit` (which makes a scenario of it) and `export --to perfetto`"},
    KindRow{FileKind::kStragglerCsv, "", "a straggler CSV",
            "`rrfp info`, `replay`, `fit` (which makes a scenario of it) and `import --from "
            "straggler-csv`"},
    KindRow{FileKind::kMegatronLog, "", "a Megatron-LM log", "`rrfp import --from megatron-log`"},
    KindRow{FileKind::kProfile, "", "a PyTorch profiler file", "`rrfp import --from kineto`"},
    KindRow{FileKind::kNsysReport, "", "an SQLite file, as Nsight Systems exports",
            "`rrfp import --from nsys`"},
    KindRow{FileKind::kScheduleCsv, "", "a schedule of torch.distributed.pipelining",
            "`rrfp import --from torch-csv`, `rrfp schedule --from` and the hint of a scenario"},
    KindRow{FileKind::kCalibration, "rrfp.calibration/1", "a calibration",
            "--calibration of `rrfp simulate`, `sweep` and `validate`"},
    KindRow{FileKind::kDecisions, "rrfp.decisions/1", "a decision log", "`rrfp replay-log`"},
    KindRow{FileKind::kSweep, "rrfp.sweep/1", "the results of a sweep",
            "plots/sweep_table.py and plots/speedup_vs_memory.py; the scenario*.json beside it is "
            "what was swept"},
    KindRow{FileKind::kSweepRuns, "", "a table of sweep results",
            "spreadsheets; the scenario*.json beside it is what was swept"},
    KindRow{FileKind::kResult, "rrfp.result/1", "the result of `rrfp simulate --json`",
            "programs that read it"},
    KindRow{FileKind::kValidation, "rrfp.validation/1", "the result of `rrfp validate`",
            "plots/validation.py"},
    KindRow{FileKind::kReplayReport, "rrfp.replay/1", "the report of `rrfp replay --json`",
            "programs that read it"},
    KindRow{FileKind::kFitReport, "rrfp.fit/1", "the report of `rrfp fit --json`",
            "programs that read it"},
    KindRow{FileKind::kPresets, "rrfp.presets/1", "the list of `rrfp presets --json`",
            "programs that read it"},
    KindRow{FileKind::kTimeline, "", "a timeline for Perfetto",
            "ui.perfetto.dev; what it was made of is the file to give"},
};

const KindRow& row_of(FileKind kind) {
  return *std::find_if(kKinds.begin(), kKinds.end(),
                       [kind](const KindRow& row) { return row.kind == kind; });
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// The first `"schema": "..."`, however it is spaced; empty where there is none.
std::string_view schema_in(std::string_view text) {
  constexpr std::string_view kKey = "\"schema\"";
  constexpr std::string_view kSpace = " \t\r\n";
  for (std::size_t at = text.find(kKey); at != text.npos; at = text.find(kKey, at + 1)) {
    std::size_t next = text.find_first_not_of(kSpace, at + kKey.size());
    if (next == text.npos || text[next] != ':') continue;
    next = text.find_first_not_of(kSpace, next + 1);
    if (next == text.npos || text[next] != '"') continue;
    const std::size_t end = text.find('"', next + 1);
    if (end != text.npos) return text.substr(next + 1, end - next - 1);
  }
  return {};
}

// Whether the first cell of a CSV is a task such as 0F0, of a rank that has any.
bool begins_with_task(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(", \t\r\n");
  if (begin == text.npos) return false;
  const std::size_t end = std::min(text.find_first_of(",\r\n", begin), text.size());
  return parse_task(std::string(text.substr(begin, end - begin))).ok();
}

bool is_json(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != text.npos && (text[begin] == '{' || text[begin] == '[' || text[begin] == '/');
}

std::optional<FileKind> kind_of_json(std::string_view head) {
  // Profiles have a number at "schemaVersion", and no key "schema".
  if (holds(head, "\"traceEvents\"")) {
    const bool profile = holds(head, "\"schemaVersion\"") || holds(head, "\"distributedInfo\"") ||
                         holds(head, "\"deviceProperties\"");
    return profile ? FileKind::kProfile : FileKind::kTimeline;
  }
  const std::string_view schema = schema_in(head);
  if (schema.empty()) return std::nullopt;
  for (const KindRow& row : kKinds) {
    if (row.schema == schema) return row.kind;
  }
  return std::nullopt;
}

std::string described(const KindRow& row) {
  return std::string(row.what) + (row.schema.empty() ? "" : " (" + std::string(row.schema) + ")");
}

// Profiles of many ranks are given as the folder that holds them.
bool comes_as_folder(FileKind kind) {
  return kind == FileKind::kProfile || kind == FileKind::kNsysReport;
}

// The first file, by name, of a kind that is known; more than a few are not looked at.
std::optional<std::pair<std::string, FileKind>> known_file_in(const std::string& folder) {
  constexpr std::size_t kMost = 64;
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end;
       !failed && at != end && names.size() < kMost; at.increment(failed)) {
    names.push_back(at->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string path = (std::filesystem::path(folder) / name).string();
    if (const std::optional<FileKind> kind = kind_of_file(path)) return std::pair(name, *kind);
  }
  return std::nullopt;
}

Error explain_folder(const Error& error, const std::string& folder,
                     std::span<const FileKind> taken) {
  if (std::any_of(taken.begin(), taken.end(), comes_as_folder)) return error;
  std::string text = folder + ": is a directory; expected a file, " + described(taken);
  const auto known = known_file_in(folder);
  if (!known) return Error{text};
  const auto& [name, kind] = *known;
  const KindRow& row = row_of(kind);
  text += ". " + name + " in it is " + described(row);
  if (std::find(taken.begin(), taken.end(), kind) != taken.end()) return Error{text};
  return Error{text + ", for " + std::string(row.use)};
}

}  // namespace

std::string described(std::span<const FileKind> kinds) {
  std::string text;
  for (const FileKind kind : kinds) {
    text += (text.empty() ? "" : " or ") + described(row_of(kind));
  }
  return text;
}

std::string_view schema_of(FileKind kind) { return row_of(kind).schema; }

std::optional<FileKind> kind_of_text(std::string_view head) {
  head = head.substr(0, kHeadBytes);
  if (head.starts_with("SQLite format 3")) return FileKind::kNsysReport;
  if (is_json(head)) return kind_of_json(head);
  const std::string_view line = head.substr(0, head.find('\n'));
  if (line.starts_with("point,")) return FileKind::kSweepRuns;
  if (holds(line, "optype")) return FileKind::kStragglerCsv;
  if (begins_with_task(head)) return FileKind::kScheduleCsv;
  if (holds(head, "elapsed time per iteration (ms)")) return FileKind::kMegatronLog;
  return std::nullopt;
}

std::optional<FileKind> kind_of_file(const std::string& path) {
  std::error_code ignored;
  // Opening a pipe would take what is in it from whoever reads it.
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  Result<ByteSource> bytes = ByteSource::open(path);
  if (!bytes.ok()) return std::nullopt;
  std::string head(kHeadBytes, '\0');
  std::size_t filled = 0;
  while (filled < head.size()) {
    const Result<std::size_t> got = bytes->read(head.data() + filled, head.size() - filled);
    if (!got.ok() || *got == 0) break;
    filled += *got;
  }
  head.resize(filled);
  return kind_of_text(head);
}

Error explain_kind(const Error& error, const std::string& file, std::optional<FileKind> found,
                   std::span<const FileKind> taken) {
  if (!found || std::find(taken.begin(), taken.end(), *found) != taken.end()) return error;
  const KindRow& row = row_of(*found);
  return Error{file + ": found " + described(row) + "; expected " + described(taken) + ". " +
               "What was found is for " + std::string(row.use)};
}

Error explain_kind(const Error& error, const std::string& path, std::span<const FileKind> taken) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return explain_folder(error, path, taken);
  return explain_kind(error, path, kind_of_file(path), taken);
}

}  // namespace rrfp
