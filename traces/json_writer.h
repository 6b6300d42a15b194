// Builds and prints a JsonValue.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "traces/json_value.h"

namespace rrfp {

enum class JsonLayout : std::uint8_t {
  kCompact,   ///< one line, no spaces
  kReadable,  ///< two spaces a level; what fits one line, and every array of numbers, on one line
};

/// An array of integers.
JsonValue json_integers(std::span<const std::int64_t> numbers);

/// Without an end of line. Texts that are not UTF-8 are written with U+FFFD
/// in place of the bytes that are wrong.
std::string to_text(const JsonValue& value, JsonLayout layout);

}  // namespace rrfp
