// Goal: a sampler gives the distribution that was asked for, out to the tails, is monotone in its
// bits, and gives the same numbers on every machine.
#include "traces/distribution.h"

#include <gtest/gtest.h>

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <functional>

#include "scheduler_core/random.h"

namespace rrfp {
namespace {

// The bits that stand for a probability.
std::uint64_t bits_at(double p) { return static_cast<std::uint64_t>(p * 0x1.0p64); }

constexpr double kProbabilities[] = {1e-7, 1e-5, 1e-3, 0.01, 0.1,   0.25,    0.4,
                                     0.5,  0.6,  0.75, 0.9,  0.999, 0.99999, 1 - 1e-7};

void expect_quantiles(const Distribution& distribution, const std::function<double(double)>& truth,
                      double tolerance) {
  const Sampler sampler(distribution);
  for (const double p : kProbabilities) {
    EXPECT_NEAR(sampler.at(bits_at(p)), truth(p), tolerance) << "at " << p;
  }
}

double normal_at(double p) { return quantile(boost::math::normal(), p); }

TEST(Distribution, QuantilesAreThoseOfTheFormula) {
  expect_quantiles(
      FixedValue{1.25}, [](double) { return 1.25; }, 0);
  expect_quantiles(
      Uniform{2, 5}, [](double p) { return 2 + 3 * p; }, 1e-12);
  expect_quantiles(
      LogUniform{30, 36'000}, [](double p) { return 30 * std::pow(1200, p); }, 30);
  expect_quantiles(
      Normal{1, 0.016, {}, {}}, [](double p) { return 1 + 0.016 * normal_at(p); }, 0.016 * 2e-4);
  expect_quantiles(
      Lognormal{2, 0.5}, [](double p) { return 2 * std::exp(0.5 * normal_at(p) - 0.125); }, 2e-2);
  expect_quantiles(
      Exponential{7}, [](double p) { return -7 * std::log1p(-p); }, 7e-3);
  expect_quantiles(
      Quantiles{{0, 1, 4}}, [](double p) { return p < 0.5 ? 2 * p : 6 * p - 2; }, 1e-12);
}

// Wide and narrow shapes, with densities that go to infinity at either end.
TEST(Distribution, BetaQuantilesAreThoseOfBoost) {
  for (const auto& [a, b] : {std::pair{0.257, 1.067}, {2.0, 3.0}, {0.5, 0.5}, {40.0, 1.5}}) {
    const boost::math::beta_distribution<> truth(a, b);
    expect_quantiles(
        Beta{a, b, 3}, [&](double p) { return 3 * quantile(truth, p); }, 2e-3);
    EXPECT_NEAR(Sampler(Beta{a, b, 3}).mean(), 3 * a / (a + b), 1e-3);
  }
}

// Powers of x and 1 - x alone leave the range of double here.
TEST(Distribution, BetaQuantilesOfLargeShapesAreThoseOfBoost) {
  for (const auto& [a, b] :
       {std::pair{500.0, 500.0}, {1e4, 1e4}, {1e4, 0.1}, {0.1, 1e4}, {1e4, 2.0}, {30.0, 5000.0}}) {
    const boost::math::beta_distribution<> truth(a, b);
    expect_quantiles(
        Beta{a, b, 1}, [&](double p) { return quantile(truth, p); },
        2e-3 * boost::math::standard_deviation(truth) + 1e-12);
    EXPECT_NEAR(Sampler(Beta{a, b, 1}).mean(), a / (a + b), 1e-3 * a / (a + b));
  }
}

TEST(Distribution, BoundsLeaveOutWhatLiesBeyond) {
  const Sampler sampler(Normal{1, 0.016, 0.95, 1.04});
  const boost::math::normal unbounded(1, 0.016);
  const double below = cdf(unbounded, 0.95);
  const double kept = cdf(unbounded, 1.04) - below;
  for (const double p : kProbabilities) {
    EXPECT_NEAR(sampler.at(bits_at(p)), quantile(unbounded, below + p * kept), 1e-5) << p;
  }
  EXPECT_GE(sampler.at(0), 0.95);
  EXPECT_LE(sampler.at(~std::uint64_t{0}), 1.04);
}

TEST(Distribution, RisesWithItsBits) {
  for (const Distribution& distribution :
       {Distribution(Normal{1, 0.2, 0.5, {}}), Distribution(Beta{0.257, 1.067, 1}),
        Distribution(LogUniform{1, 1000}), Distribution(Quantiles{{1, 1, 2, 5}})}) {
    const Sampler sampler(distribution);
    double before = sampler.at(0);
    for (int i = 1; i < 4000; ++i) {
      const double value = sampler.at(static_cast<std::uint64_t>(i) << 52);
      ASSERT_GE(value, before);
      before = value;
    }
    // Across the joints of the tails.
    for (int octave = 1; octave < 63; ++octave) {
      const std::uint64_t bits = std::uint64_t{1} << octave;
      ASSERT_LE(sampler.at(bits - 1), sampler.at(bits));
      ASSERT_LE(sampler.at(~bits), sampler.at(~(bits - 1)));
    }
  }
}

TEST(Distribution, MixturesHaveTheirWeights) {
  const Sampler sampler(Mixture{{{3, FixedValue{1}}, {0, FixedValue{9}}, {1, Uniform{2, 4}}}});
  EXPECT_NEAR(sampler.mean(), 0.75 * 1 + 0.25 * 3, 1e-12);
  EXPECT_EQ(sampler.at(bits_at(0.7499)), 1);
  EXPECT_NEAR(sampler.at(bits_at(0.875)), 3, 1e-9);
  EXPECT_NEAR(sampler.at(bits_at(0.7501)), 2, 1e-3);
}

TEST(Distribution, ScaledGivesScaledValues) {
  for (const Distribution& distribution :
       {Distribution(FixedValue{2}), Distribution(Uniform{1, 2}), Distribution(LogUniform{1, 9}),
        Distribution(Normal{1, 0.5, 0.2, 3}), Distribution(Lognormal{1, 0.3}),
        Distribution(Exponential{2}), Distribution(Beta{2, 2, 1}), Distribution(Quantiles{{1, 3}}),
        Distribution(Mixture{{{1, Uniform{1, 2}}, {2, FixedValue{5}}}})}) {
    const Sampler plain(distribution);
    const Sampler by_thousand(scaled(distribution, 1000));
    for (const double p : kProbabilities) {
      EXPECT_NEAR(by_thousand.at(bits_at(p)), 1000 * plain.at(bits_at(p)), 1e-6);
    }
  }
}

// Empirically, with the bits that worlds are drawn with.
TEST(Distribution, SampleMeanIsTheMean) {
  const Distribution all[] = {Normal{1, 0.3, 0, {}}, Lognormal{1, 1}, Beta{0.257, 1.067, 1},
                              Exponential{1}, LogUniform{0.1, 10}};
  for (const Distribution& distribution : all) {
    const Sampler sampler(distribution);
    const DrawSeries draws(DrawKey{1, 2, 3, 0});
    double sum = 0;
    double squares = 0;
    constexpr int kCount = 200'000;
    for (int i = 0; i < kCount; ++i) {
      const double value = sampler.at(draws.bits(static_cast<std::uint64_t>(i)));
      sum += value;
      squares += value * value;
    }
    const double mean = sum / kCount;
    const double error = std::sqrt((squares / kCount - mean * mean) / kCount);
    EXPECT_NEAR(mean, sampler.mean(), 4 * error);
  }
}

// To the last bit: a world drawn on another machine must be this one.
TEST(Distribution, ValuesAreTheSameOnEveryMachine) {
  const std::uint64_t bits = 0x123456789abcdef0ULL;
  EXPECT_EQ(Sampler(Normal{1, 0.016, 0.95, 1.04}).at(bits), 0x1.f400223c0fcfap-1);
  EXPECT_EQ(Sampler(Lognormal{1, 0.3}).at(bits), 0x1.3b26323420c68p-1);
  EXPECT_EQ(Sampler(Beta{0.257, 1.067, 1}).at(bits), 0x1.05dbd9813290ep-15);
  EXPECT_EQ(Sampler(LogUniform{30, 36'000}).at(bits), 0x1.8d5c6ef4553ap+5);
  EXPECT_EQ(Sampler(Exponential{1}).at(~bits), 0x1.52619180f2893p+1);
}

}  // namespace
}  // namespace rrfp
