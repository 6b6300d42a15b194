// Sums and products of times that stop at the largest int64 instead of
// overflowing: check_magnitudes refuses what is too long for a run.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <limits>

namespace rrfp {

inline constexpr std::int64_t kTooLong = std::numeric_limits<std::int64_t>::max();

/// REQUIRES: neither is negative.
constexpr std::int64_t capped_sum(std::int64_t a, std::int64_t b) {
  return a > kTooLong - b ? kTooLong : a + b;
}

/// REQUIRES: neither is negative.
constexpr std::int64_t capped_product(std::int64_t a, std::int64_t b) {
  __extension__ using Wide = __int128;
  const Wide product = Wide{a} * b;
  return product > kTooLong ? kTooLong : static_cast<std::int64_t>(product);
}

/// To the nearest, half up. REQUIRES: not negative.
constexpr std::int64_t rounded_ns(double ns) {
  return ns < 0x1p62 ? static_cast<std::int64_t>(ns + 0.5) : kTooLong;
}

}  // namespace rrfp
