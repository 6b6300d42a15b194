// Lists and counts in messages: "a, b, c", "1 rank", "8 microbatches".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rrfp {

/// Adds `item`, with a comma before it where it is not the first.
inline void add_to_list(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

/// "1 rank", "2 ranks", "3 microbatches".
inline std::string counted(std::int64_t count, std::string_view what) {
  std::string text = std::to_string(count) + " " + std::string(what);
  if (count == 1) return text;
  return text + (what.ends_with("ch") ? "es" : "s");
}

}  // namespace rrfp
