#include "traces/deterministic_math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

// ln 2 in two parts; the high part times any exponent is exact.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kInverseLn2 = 0x1.71547652b82fep+0;

// Coefficients from the constant upwards.
template <std::size_t kCount>
double polynomial(const std::array<double, kCount>& coefficients, double x) {
  double value = 0;
  for (std::size_t i = kCount; i-- > 0;) value = value * x + coefficients[i];
  return value;
}

// Tables of AS 241: the middle, the tails, and the far tails.
constexpr std::array<double, 8> kMiddleTop = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                              1.9715909503065514427e3, 1.3731693765509461125e4,
                                              4.5921953931549871457e4, 6.7265770927008700853e4,
                                              3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr std::array<double, 8> kMiddleBottom = {1.0,
                                                 4.2313330701600911252e1,
                                                 6.8718700749205790830e2,
                                                 5.3941960214247511077e3,
                                                 2.1213794301586595867e4,
                                                 3.9307895800092710610e4,
                                                 2.8729085735721942674e4,
                                                 5.2264952788528545610e3};
constexpr std::array<double, 8> kTailTop = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                            5.76949722146069140550e0,  3.64784832476320460504e0,
                                            1.27045825245236838258e0,  2.41780725177450611770e-1,
                                            2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr std::array<double, 8> kTailBottom = {1.0,
                                               2.05319162663775882187e0,
                                               1.67638483018380384940e0,
                                               6.89767334985100004550e-1,
                                               1.48103976427480074590e-1,
                                               1.51986665636164571966e-2,
                                               5.47593808499534494600e-4,
                                               1.05075007164441684324e-9};
constexpr std::array<double, 8> kFarTop = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                           1.78482653991729133580e0,  2.96560571828504891230e-1,
                                           2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                           2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr std::array<double, 8> kFarBottom = {1.0,
                                              5.99832206555887937690e-1,
                                              1.36929880922735805310e-1,
                                              1.48753612908506148525e-2,
                                              7.86869131145613259100e-4,
                                              1.84631831751005468180e-5,
                                              1.42151175831644588870e-7,
                                              2.04426310338993978564e-15};

}  // namespace

double deterministic_exp(double x) {
  if (x > 710) return std::numeric_limits<double>::infinity();
  if (x < -750) return 0;
  const double k = std::floor(x * kInverseLn2 + 0.5);
  const double r = (x - k * kLn2High) - k * kLn2Low;
  // Taylor: |r| is at most 0.35, and 0.35^14 / 14! is below 1e-17.
  double sum = 1;
  for (int n = 13; n >= 1; --n) sum = 1 + r * sum / n;
  return std::ldexp(sum, static_cast<int>(k));
}

double deterministic_log(double x) {
  RRFP_CHECK(x >= std::numeric_limits<double>::min());
  RRFP_CHECK(x <= std::numeric_limits<double>::max());
  // x = 2^k * m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh s.
  const auto bits = std::bit_cast<std::uint64_t>(x);
  int k = static_cast<int>(bits >> 52) - 1023;
  double m =
      std::bit_cast<double>((bits & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{1023} << 52));
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    ++k;
  }
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  // s^2 is at most 0.0295, and 0.0295^11 is below 1e-16.
  double sum = 0;
  for (int n = 21; n >= 3; n -= 2) sum = (sum + 1.0 / n) * square;
  return k * kLn2High + (2 * s + (2 * s * sum + k * kLn2Low));
}

double sine_of_turns(double turns) {
  // Exact: to a turn in [-1/2, 1/2], then to the quarter around 0.
  double x = turns - std::floor(turns + 0.5);
  if (x > 0.25) x = 0.5 - x;
  if (x < -0.25) x = -0.5 - x;
  const double angle = x * 0x1.921fb54442d18p+2;
  const double square = angle * angle;
  // Taylor: |angle| is at most 1.58, and 1.58^23 / 23! is below 2e-18.
  double sum = 1;
  for (int n = 20; n >= 2; n -= 2) sum = 1 - square * sum / (n * (n + 1));
  return angle * sum;
}

double normal_quantile(double p) {
  RRFP_CHECK(p > 0 && p < 1);
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kMiddleTop, r) / polynomial(kMiddleBottom, r);
  }
  const double r = std::sqrt(-deterministic_log(q < 0 ? p : 1 - p));
  const double z = r <= 5 ? polynomial(kTailTop, r - 1.6) / polynomial(kTailBottom, r - 1.6)
                          : polynomial(kFarTop, r - 5) / polynomial(kFarBottom, r - 5);
  return q < 0 ? -z : z;
}

}  // namespace rrfp
