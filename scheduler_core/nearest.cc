#include "scheduler_core/nearest.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>

namespace rrfp {

namespace {

constexpr std::size_t kLongest = 64;

char folded(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '_' ? '-' : c;
}

// Whether `word` is how `candidate` begins, and only that.
bool begins(std::string_view word, std::string_view candidate) {
  return !word.empty() && word.size() < candidate.size() &&
         std::equal(word.begin(), word.end(), candidate.begin(),
                    [](char a, char b) { return folded(a) == folded(b); });
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kLongest);
  b = b.substr(0, kLongest);
  // Three rows of the table of optimal string alignment: row i holds the
  // distances from the first i bytes of `a` to each prefix of `b`.
  using Row = std::array<int, kLongest + 1>;
  Row two_up{};
  Row up{};
  Row row{};
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_up = up;
    up = row;
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = folded(a[i - 1]);
      const char y = folded(b[j - 1]);
      row[j] = std::min({up[j] + 1, row[j - 1] + 1, up[j - 1] + (x == y ? 0 : 1)});
      if (i > 1 && j > 1 && x == folded(b[j - 2]) && folded(a[i - 2]) == y) {
        row[j] = std::min(row[j], two_up[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::vector<std::string_view> by_nearness(std::string_view word,
                                          std::span<const std::string_view> known) {
  struct Scored {
    bool other;  // does not begin with the word
    int distance;
    std::string_view candidate;
  };
  std::vector<Scored> scored;
  scored.reserve(known.size());
  for (const std::string_view candidate : known) {
    scored.push_back({!begins(word, candidate), edit_distance(word, candidate), candidate});
  }
  std::stable_sort(scored.begin(), scored.end(), [](const Scored& a, const Scored& b) {
    return std::tie(a.other, a.distance) < std::tie(b.other, b.distance);
  });
  std::vector<std::string_view> words;
  words.reserve(scored.size());
  for (const Scored& one : scored) words.push_back(one.candidate);
  return words;
}

std::string nearest(std::string_view word, std::span<const std::string_view> known) {
  if (known.empty()) return {};
  return std::string(by_nearness(word, known).front());
}

std::string in_quotes(std::string_view word) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text = "\"";
  for (const char c : word.substr(0, kLongest)) {
    if (c >= ' ' && c <= '~') {
      text += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    text += "\\x";
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  if (word.size() > kLongest) text += "...";
  return text + "\"";
}

}  // namespace rrfp
