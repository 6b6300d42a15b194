// Lists in messages: "a, b, c".
#pragma once

#include <string>
#include <string_view>

namespace rrfp {

/// Adds `item`, with a comma before it where it is not the first.
inline void add_to_list(std::string& list, std::string_view item) {
  if (!list.empty()) list += ", ";
  list += item;
}

}  // namespace rrfp
