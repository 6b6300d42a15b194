// What a set of paired measurements says. All of it is a function of the
// numbers and their order alone, so the same runs give the same bytes.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rrfp {

/// REQUIRES: not empty.
double mean(std::span<const std::int64_t> values);

/// The nearest-rank percentile: the least value that at least `percent` of
/// all values do not exceed. REQUIRES: not empty, 0 < percent <= 100.
std::int64_t percentile(std::span<const std::int64_t> values, int percent);

struct Interval {
  double low = 0;
  double high = 0;
};

inline constexpr int kResamples = 2000;

/// mean(baseline) / mean(policy) for each of kResamples paired resamples:
/// resample r draws the same iterations, with replacement, from both. The
/// interval holds the middle 95 %. Draws are a function of (seed, r).
/// REQUIRES: as many in both, and every sum of `policies[i]` is above 0.
std::vector<Interval> bootstrap_ratios(std::span<const std::int64_t> baseline,
                                       std::span<const std::vector<std::int64_t>> policies,
                                       std::uint64_t seed);

}  // namespace rrfp
