// What an error suggests in place of a word that is not known; nothing where no
// known word is like it.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rrfp {

/// "; did you mean \"simulate\"?", or "." where not even the nearest of `known`
/// (nearest.h) is near: begins with `word`, or differs in at most a third of
/// its letters. `dashes` stand before an option, in place of quotes.
std::string suggestion(std::string_view word, std::span<const std::string_view> known,
                       std::string_view dashes = "");

}  // namespace rrfp
