// Strict JSON from a file or a text. Beyond the grammar it refuses what a
// person would want to hear about: a key given twice, more than 64 levels,
// a number that fits no int64 or double, bytes that are not UTF-8.
//
// An error names the file and either line and column (grammar) or the JSON
// pointer (content). Hostile input costs time and memory in proportion to its
// size, which is limited.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"
#include "traces/json_value.h"
#include "traces/text_file.h"

namespace rrfp {

inline constexpr int kMaxJsonDepth = 64;

struct JsonOptions {
  std::size_t limit_bytes = kDefaultFileLimitBytes;
  /// Also takes // and /* */, for files that people write.
  bool comments = false;
};

/// A parsed file with the name that messages about it begin with.
struct JsonDocument {
  std::string file;
  JsonValue root;
};

Result<JsonDocument> read_json_file(const std::string& path, const JsonOptions& options = {});

/// `file` only stands in messages.
Result<JsonDocument> parse_json(std::string_view text, std::string file,
                                const JsonOptions& options = {});

/// `pointer` with `token` added, escaped as in RFC 6901 and kept printable.
std::string json_pointer(const std::string& pointer, std::string_view token);

}  // namespace rrfp
