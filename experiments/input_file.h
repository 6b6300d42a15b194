// The file that a command was given: a case or a scenario, told apart by what
// the file itself says it is.
#pragma once

#include <string>
#include <string_view>

#include "experiments/options.h"
#include "scheduler_core/result.h"
#include "traces/json_reader.h"

namespace rrfp {

inline constexpr OptionRow kFileLimitRow = {"max-file-mb", "N",
                                            "largest input file that is read, in MiB (default 64)"};

/// The limit that --max-file-mb asks for, in bytes.
Result<std::size_t> file_limit(const Options& options);

/// A text; "-" is standard input.
Result<std::string> read_input_text(const std::string& path, std::size_t limit_bytes);

struct InputFile {
  JsonDocument document;
  std::string schema;
};

/// The document and the schema that it names, one of `schemas`. Comments are
/// allowed in scenarios, which people write, and nowhere else.
Result<InputFile> read_input(const std::string& path, std::size_t limit_bytes,
                             std::span<const std::string_view> schemas);

}  // namespace rrfp
