#include "experiments/statistics.h"

#include <algorithm>

#include "scheduler_core/check.h"
#include "scheduler_core/random.h"

namespace rrfp {

namespace {

__extension__ using Wide = __int128;

// "bootstrp": keeps these draws apart from those of worlds.
constexpr std::uint64_t kBootstrap = 0x626f6f7473747270ULL;

Wide sum(std::span<const std::int64_t> values) {
  Wide total = 0;
  for (const std::int64_t value : values) total += value;
  return total;
}

Interval middle_95_percent(std::vector<double>& ratios) {
  std::sort(ratios.begin(), ratios.end());
  const std::size_t cut = ratios.size() / 40;  // 2.5 % on each side
  return {ratios[cut - 1], ratios[ratios.size() - cut - 1]};
}

}  // namespace

double mean(std::span<const std::int64_t> values) {
  RRFP_CHECK(!values.empty());
  return static_cast<double>(sum(values)) / static_cast<double>(values.size());
}

std::int64_t percentile(std::span<const std::int64_t> values, int percent) {
  RRFP_CHECK(!values.empty());
  std::vector<std::int64_t> sorted(values.begin(), values.end());
  const std::size_t rank = (sorted.size() * static_cast<std::size_t>(percent) + 99) / 100;
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(sorted.begin(), nth, sorted.end());
  return *nth;
}

std::vector<Interval> bootstrap_ratios(std::span<const std::int64_t> baseline,
                                       std::span<const std::vector<std::int64_t>> policies,
                                       std::uint64_t seed) {
  std::vector<std::vector<double>> ratios(policies.size());
  std::vector<std::size_t> drawn(baseline.size());
  for (int resample = 0; resample < kResamples; ++resample) {
    RandomStream stream({seed, static_cast<std::uint64_t>(resample), kBootstrap, 0});
    Wide base = 0;
    for (std::size_t& index : drawn) {
      index = static_cast<std::size_t>(stream.below(baseline.size()));
      base += baseline[index];
    }
    for (std::size_t policy = 0; policy < policies.size(); ++policy) {
      Wide total = 0;
      for (const std::size_t index : drawn) total += policies[policy][index];
      ratios[policy].push_back(static_cast<double>(base) / static_cast<double>(total));
    }
  }
  std::vector<Interval> intervals;
  for (std::vector<double>& of_policy : ratios) intervals.push_back(middle_95_percent(of_policy));
  return intervals;
}

}  // namespace rrfp
