// What a file is, told by its first bytes, so that a command that is given one
// of another kind says what it found, what it takes, and which command takes
// that file. Kinds are looked for only to explain an error that there is
// already: no file is refused by its looks.
//
// Thread safety: pure functions but for the files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"

namespace rrfp {

enum class FileKind : std::uint8_t {
  kCase,
  kScenario,
  kTrace,
  kStragglerCsv,
  kMegatronLog,
  kProfile,
  kNsysReport,
  kScheduleCsv,
  kCalibration,
  kDecisions,
  kSweep,
  kSweepRuns,
  kResult,
  kValidation,
  kReplayReport,
  kFitReport,
  kPresets,
  kTimeline,
};

/// What files that begin with `head` are; nothing where it is none of these.
std::optional<FileKind> kind_of_text(std::string_view head);

/// The same of a regular file, plain or compressed; nothing also where it cannot be read.
std::optional<FileKind> kind_of_file(const std::string& path);

/// The schema that files of this kind name; empty where they name none.
std::string_view schema_of(FileKind kind);

/// "a case (rrfp.case/1) or a scenario (rrfp.scenario/1)".
std::string described(std::span<const FileKind> kinds);

/// `error`, unless the file is of a known kind that is not among `taken`: then
/// an error that names both and the commands for it. `file` stands in messages.
Error explain_kind(const Error& error, const std::string& file, std::optional<FileKind> found,
                   std::span<const FileKind> taken);

/// The same of the file at `path`. Of a folder, where none of `taken` is kept in
/// one, the error says that, and what it holds.
Error explain_kind(const Error& error, const std::string& path, std::span<const FileKind> taken);

/// What the commands about recorded jobs take (trace_source.h).
inline constexpr FileKind kTraceKinds[] = {FileKind::kTrace, FileKind::kStragglerCsv};

}  // namespace rrfp
