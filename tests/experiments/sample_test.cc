// Goal: what is said of samples is what textbooks say, and a distribution made
// of a sample's quantiles has the moments asked for and the sample's shape.
#include "experiments/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "scheduler_core/random.h"
#include "traces/deterministic_math.h"

namespace rrfp {
namespace {

std::vector<double> normals(int count, std::uint64_t seed) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(normal_quantile(random_unit({seed, 0, 0, static_cast<std::uint64_t>(i)})));
  }
  return values;
}

/// Draws at evenly spread probabilities, ascending.
std::vector<double> drawn(const Distribution& distribution, int count) {
  const Sampler sampler(distribution);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(sampler.at(~std::uint64_t{0} / static_cast<std::uint64_t>(count) *
                                static_cast<std::uint64_t>(i)));
  }
  std::sort(values.begin(), values.end());
  return values;
}

TEST(Sample, Quantiles) {
  const std::vector<double> values = {1, 2, 4, 8};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 8);
  EXPECT_DOUBLE_EQ(quantile(std::vector<double>{5}, 0.3), 5);
}

TEST(Sample, Correlation) {
  const std::vector<double> a = {1, 2, 3, 4};
  const std::vector<double> b = {10, 20, 30, 40};
  const std::vector<double> c = {-1, -2, -3, -4};
  const std::vector<double> still = {7, 7, 7, 7};
  EXPECT_DOUBLE_EQ(correlation(a, b), 1);
  EXPECT_DOUBLE_EQ(correlation(a, c), -1);
  EXPECT_DOUBLE_EQ(correlation(a, still), 0);
  EXPECT_NEAR(correlation(a, std::vector<double>{1, 3, 2, 4}), 0.8, 1e-12);
}

TEST(Sample, KolmogorovSmirnov) {
  const std::vector<double> a = {1, 2, 3, 4};
  EXPECT_DOUBLE_EQ(ks_distance(a, a), 0);
  EXPECT_DOUBLE_EQ(ks_distance(a, std::vector<double>{5, 6}), 1);
  EXPECT_DOUBLE_EQ(ks_distance(a, std::vector<double>{3, 4, 5, 6}), 0.5);
  // Ties count on both sides at once.
  EXPECT_DOUBLE_EQ(ks_distance(std::vector<double>{1, 1, 1}, std::vector<double>{1}), 0);
}

TEST(Sample, QuantileDistributionKeepsShapeAndMoments) {
  for (const int count : {30, 300, 30'000}) {
    std::vector<double> sample = normals(count, 3);
    // Two humps, as of short and long sequences: no family has such a shape.
    for (double& value : sample) value = value > 1 ? 6 + value : value;
    const double middle = mean(sample);
    const double spread = standard_deviation(sample);
    const std::vector<double> values =
        drawn(quantile_distribution(sample, middle, spread, -100), 20'000);
    std::sort(sample.begin(), sample.end());
    EXPECT_NEAR(mean(values), middle, 0.01 * spread) << count;
    EXPECT_NEAR(standard_deviation(values), spread, 0.01 * spread) << count;
    // What stands between the humps is a step of the table, wider the smaller the sample.
    EXPECT_LT(ks_distance(sample, values), count > 1000 ? 0.03 : count > 100 ? 0.1 : 0.25) << count;
    // Asked for another mean and spread, it is moved and stretched.
    const std::vector<double> moved = drawn(quantile_distribution(sample, 1, 0.1, 0), 20'000);
    EXPECT_NEAR(mean(moved), 1, 0.001) << count;
    EXPECT_NEAR(standard_deviation(moved), 0.1, 0.001) << count;
  }
}

// One value in a thousand is four times as long: a table of equal steps would
// spread it over two percent.
TEST(Sample, RareLongOnesStayRare) {
  std::vector<double> sample;
  for (int i = 0; i < 20'000; ++i) sample.push_back(i % 1000 == 0 ? 4 : 1 + 1e-6 * i);
  const std::vector<double> values =
      drawn(quantile_distribution(sample, mean(sample), standard_deviation(sample), 0), 20'000);
  const auto longer = std::count_if(values.begin(), values.end(), [](double v) { return v > 1.5; });
  EXPECT_LT(longer, 120);
}

TEST(Sample, WhatDoesNotVaryIsOneValue) {
  const Distribution fixed = quantile_distribution({2, 2, 2}, 2, 0, 0);
  EXPECT_EQ(fixed, Distribution(FixedValue{2}));
  EXPECT_EQ(quantile_distribution({1, 2, 3}, 1, 0, 0), Distribution(FixedValue{1}));
}

TEST(Sample, NothingBelowTheLeast) {
  const std::vector<double> values = drawn(quantile_distribution(normals(500, 4), 1, 2, 0.1), 1000);
  EXPECT_GE(values.front(), 0.1);
}

}  // namespace
}  // namespace rrfp
