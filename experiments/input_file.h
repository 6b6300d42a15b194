// The file that a command was given: a case or a scenario, told apart by what
// the file itself says it is; or a recorded trace. A file of another kind is
// told by name (file_kind.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "experiments/file_kind.h"
#include "experiments/options.h"
#include "scheduler_core/result.h"
#include "traces/json_reader.h"
#include "traces/trace_source.h"

namespace rrfp {

inline constexpr OptionRow kFileLimitRow = {"max-file-mb", "N",
                                            "largest input file that is read, in MiB (default 64)",
                                            OptionRow::Alike::kNot};

/// The limit that --max-file-mb asks for, in bytes.
Result<std::size_t> file_limit(const Options& options);

/// A text; "-" is standard input.
Result<std::string> read_input_text(const std::string& path, std::size_t limit_bytes);

struct InputFile {
  JsonDocument document;
  FileKind kind = FileKind::kCase;
  std::string content;  ///< see describe_content()
};

/// What the commands that take either take.
inline constexpr FileKind kCaseOrScenario[] = {FileKind::kCase, FileKind::kScenario};

/// The document and what its schema says it is, one of `taken`, which are cases
/// or scenarios. Comments are allowed in scenarios, which people write, and
/// nowhere else.
Result<InputFile> read_input(const std::string& path, std::size_t limit_bytes,
                             std::span<const FileKind> taken);

/// Opens a recorded trace.
Result<OpenedTrace> open_input_trace(const std::string& path, const ReadProgress& progress = {});

}  // namespace rrfp
