// "Did you mean": the known words closest to one that is not known. Used for
// schedule names, JSON keys and command line flags alike, so that every such
// error reads the same.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rrfp {

/// How many insertions, deletions, replacements and swaps of neighbours lead
/// from `a` to `b`. Letter case, and `-` against `_`, make no difference. Only
/// the first 64 bytes of each are looked at, so hostile input costs little.
int edit_distance(std::string_view a, std::string_view b);

/// The word of `known` nearest to `word`: the nearest of those that begin with
/// it, where any does; of equals the first. Empty where `known` is.
std::string nearest(std::string_view word, std::span<const std::string_view> known);

/// All of `known`, nearest first; of equals in the given order.
std::vector<std::string_view> by_nearness(std::string_view word,
                                          std::span<const std::string_view> known);

/// `word` fit for an error message: in double quotes, with bytes that are not
/// printable ASCII as \xNN, cut after 64 bytes.
std::string in_quotes(std::string_view word);

}  // namespace rrfp
