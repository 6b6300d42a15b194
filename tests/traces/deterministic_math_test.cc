// Goal: exp, log and the normal quantile are right to the error they state, and give the very bits
// that they gave on the machine where this test was written: a draw is the same everywhere.
#include "traces/deterministic_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <cstdint>

#include "scheduler_core/random.h"

namespace rrfp {
namespace {

constexpr int kPoints = 20'000;

double unit(int i) { return random_unit({.index = static_cast<std::uint64_t>(i)}); }

TEST(DeterministicMath, ExpIsWithinItsError) {
  EXPECT_EQ(deterministic_exp(0), 1);
  for (int i = 0; i < kPoints; ++i) {
    const double x = (unit(i) - 0.5) * 200;
    const long double exact = std::exp(static_cast<long double>(x));
    EXPECT_LT(std::fabs(static_cast<double>(deterministic_exp(x) / exact - 1)), 1e-15) << x;
  }
  EXPECT_EQ(deterministic_exp(-1000), 0);
  EXPECT_TRUE(std::isinf(deterministic_exp(1000)));
}

TEST(DeterministicMath, LogIsWithinItsError) {
  EXPECT_EQ(deterministic_log(1), 0);
  for (int i = 0; i < kPoints; ++i) {
    // Half of them near 1, where the relative error is hard to keep.
    const double x = i % 2 == 0 ? std::exp((unit(i) - 0.5) * 600) : 0.5 + unit(i);
    const long double exact = std::log(static_cast<long double>(x));
    const auto error = std::fabs(static_cast<double>(deterministic_log(x) - exact));
    EXPECT_LE(error, 1e-15 * std::fabs(static_cast<double>(exact)) + 1e-16) << x;
  }
}

TEST(DeterministicMath, QuantileInvertsTheNormalDistribution) {
  EXPECT_EQ(normal_quantile(0.5), 0);
  const long double root2 = std::sqrt(2.0L);
  for (int i = 0; i < kPoints; ++i) {
    // Middle and far tails alike.
    const double p = i % 2 == 0 ? unit(i) : std::exp(-700 * unit(i));
    const long double exact = -root2 * boost::math::erfc_inv(2 * static_cast<long double>(p));
    const auto error = std::fabs(static_cast<double>(normal_quantile(p) - exact));
    EXPECT_LE(error, 3e-15 * std::fabs(static_cast<double>(exact)) + 1e-16) << p;
  }
}

TEST(DeterministicMath, BitsAreTheSameOnEveryMachine) {
  std::uint64_t hash = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double z = normal_quantile(unit(i));
    const double values[] = {z, deterministic_exp(0.3 * z), deterministic_log(unit(i))};
    for (const double value : values) {
      hash = mix_bits(hash ^ std::bit_cast<std::uint64_t>(value));
    }
  }
  EXPECT_EQ(hash, 16314876493496919949ULL);
}

}  // namespace
}  // namespace rrfp
