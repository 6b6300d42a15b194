#include "scheduler_core/suggestion.h"

#include <algorithm>

#include "scheduler_core/nearest.h"

namespace rrfp {

namespace {

bool is_near(std::string_view word, std::string_view candidate) {
  const auto length = static_cast<int>(std::max(word.size(), candidate.size()));
  // All but what `word` lacks at its end, where it lacks nothing else.
  const bool begins = !word.empty() && word.size() < candidate.size() &&
                      edit_distance(word, candidate.substr(0, word.size())) == 0;
  return begins || 3 * edit_distance(word, candidate) <= length;
}

}  // namespace

std::string suggestion(std::string_view word, std::span<const std::string_view> known,
                       std::string_view dashes) {
  const std::string candidate = nearest(word, known);
  if (!is_near(word, candidate)) return ".";
  return "; did you mean " +
         (dashes.empty() ? in_quotes(candidate) : std::string(dashes) + candidate) + "?";
}

}  // namespace rrfp
