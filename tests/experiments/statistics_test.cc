// Goal: the numbers of a sweep's table are what their names say.
#include "experiments/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "scheduler_core/random.h"

namespace rrfp {
namespace {

TEST(Statistics, NearestRankPercentiles) {
  const std::vector<std::int64_t> values = {15, 20, 35, 40, 50};
  EXPECT_EQ(percentile(values, 5), 15);
  EXPECT_EQ(percentile(values, 30), 20);
  EXPECT_EQ(percentile(values, 40), 20);
  EXPECT_EQ(percentile(values, 50), 35);
  EXPECT_EQ(percentile(values, 95), 50);
  EXPECT_EQ(percentile(values, 100), 50);
  EXPECT_DOUBLE_EQ(mean(values), 32);
  EXPECT_DOUBLE_EQ(mean(std::vector<std::int64_t>{std::int64_t{1} << 62, std::int64_t{1} << 62}),
                   0x1p62);
}

// Pairing: where one policy is always twice as fast, every resample says so,
// however much the iterations differ among themselves.
TEST(Statistics, ResamplesArePaired) {
  std::vector<std::int64_t> slow;
  std::vector<std::int64_t> fast;
  for (std::int64_t i = 1; i <= 50; ++i) {
    slow.push_back(2 * i * i);
    fast.push_back(i * i);
  }
  const std::vector<std::vector<std::int64_t>> policies = {fast, slow};
  const std::vector<Interval> intervals = bootstrap_ratios(slow, policies, 1);
  EXPECT_DOUBLE_EQ(intervals[0].low, 2);
  EXPECT_DOUBLE_EQ(intervals[0].high, 2);
  EXPECT_DOUBLE_EQ(intervals[1].low, 1);
}

// Coverage: of many experiments whose true ratio is 1, about 95 % of the
// intervals hold it. Resampling is a little too sure of itself on 40 values.
TEST(Statistics, IntervalsHoldTheTruthAboutAsOftenAsTheySay) {
  int held = 0;
  constexpr int kExperiments = 200;
  for (std::uint64_t experiment = 0; experiment < kExperiments; ++experiment) {
    RandomStream stream({42, experiment, 0, 0});
    std::vector<std::int64_t> baseline;
    std::vector<std::vector<std::int64_t>> policies(1);
    for (int i = 0; i < 40; ++i) {
      baseline.push_back(static_cast<std::int64_t>(1000 + stream.below(1000)));
      policies[0].push_back(static_cast<std::int64_t>(1000 + stream.below(1000)));
    }
    const Interval interval = bootstrap_ratios(baseline, policies, experiment)[0];
    held += interval.low <= 1 && 1 <= interval.high;
  }
  EXPECT_GE(held, 178);
  EXPECT_LE(held, 198);
}

TEST(Statistics, SeedDecidesTheResamples) {
  std::vector<std::int64_t> baseline;
  std::vector<std::vector<std::int64_t>> policies(1);
  for (std::int64_t i = 0; i < 20; ++i) {
    baseline.push_back(100 + i * i % 17);
    policies[0].push_back(90 + i * 7 % 13);
  }
  const Interval a = bootstrap_ratios(baseline, policies, 1)[0];
  const Interval b = bootstrap_ratios(baseline, policies, 1)[0];
  const Interval c = bootstrap_ratios(baseline, policies, 2)[0];
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  EXPECT_NE(a.low, c.low);
}

}  // namespace
}  // namespace rrfp
