#include "traces/distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <utility>

#include "scheduler_core/check.h"
#include "traces/deterministic_math.h"

namespace rrfp {

namespace {

// A probability as an integer of 53 bits, the middle of its cell.
constexpr int kUnitBits = 53;
constexpr std::uint64_t kUnits = std::uint64_t{1} << kUnitBits;

// One side of a kTails table: probabilities t from 0 to 1/2. Entry 0 is the end
// of the distribution, the others are the values at t = 2^-(octave + 2) *
// (1 + step / kSteps), in ascending order of t, and at 1/2.
constexpr int kOctaves = 30;
constexpr int kStepBits = 5;
constexpr int kSteps = 1 << kStepBits;
constexpr std::size_t kSide = 1 + kOctaves * kSteps + 1;

double unit_to_double(std::uint64_t unit) { return (static_cast<double>(unit) + 0.5) * 0x1.0p-53; }

std::uint64_t double_to_unit(double u) {
  const double scaled = u * 0x1.0p53;
  if (!(scaled > 0)) return 0;
  return std::min(static_cast<std::uint64_t>(scaled), kUnits - 1);
}

double between(double a, double b, double share) { return a + (b - a) * share; }

// The t of an entry of one side of the table.
double tail_probability(std::size_t entry) {
  if (entry == 0) return 0x1.0p-54;
  const int above = static_cast<int>(entry) - 1;
  const double low = std::ldexp(1.0, above / kSteps - (kOctaves + 1));
  return low * (1 + static_cast<double>(above % kSteps) / kSteps);
}

// The probability that a standard normal falls below z, by halving intervals of
// probability, so that it is the inverse of normal_quantile.
double normal_probability(double z) {
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle <= 0 || middle >= 1) break;
    (normal_quantile(middle) < z ? low : high) = middle;
  }
  return high;
}

// x^a (1 - x)^b e^log_scale times the continued fraction of the incomplete beta
// function (DLMF 8.17.22), by Lentz's method; with the scale 1 / B(a, b), over a,
// it is I_x(a, b). The scale is within the exponent because the powers alone leave
// the range of double where a and b are in the hundreds.
// REQUIRES: 0 < x < 1, and x at most (a + 1) / (a + b + 2) for fast convergence.
double beta_series(double a, double b, double x, double log_scale) {
  constexpr double kTiny = 1e-300;
  double c = 1;
  double d = 1 - (a + b) * x / (a + 1);
  if (std::fabs(d) < kTiny) d = kTiny;
  d = 1 / d;
  double fraction = d;
  for (int m = 1; m <= 500; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double term : {even, odd}) {
      d = 1 + term * d;
      if (std::fabs(d) < kTiny) d = kTiny;
      c = 1 + term / c;
      if (std::fabs(c) < kTiny) c = kTiny;
      d = 1 / d;
      change = c * d;
      fraction *= change;
    }
    if (std::fabs(change - 1) < 1e-15) break;
  }
  return deterministic_exp(a * deterministic_log(x) + b * deterministic_log(1 - x) + log_scale) *
         fraction;
}

// The beta distribution's quantile for probabilities t up to 1/2, asked for in
// ascending order.
class BetaQuantile {
 public:
  BetaQuantile(double a, double b) : a_(a), b_(b), turn_((a + 1) / (a + b + 2)) {
    // Both halves of I_x(a, b) + I_1-x(b, a) = 1 in terms of 1 / B(a, b), over the
    // powers at the turn.
    const double scale = -(a_ * deterministic_log(turn_) + b_ * deterministic_log(1 - turn_));
    const double whole =
        beta_series(a_, b_, turn_, scale) / a_ + beta_series(b_, a_, 1 - turn_, scale) / b_;
    log_constant_ = scale - deterministic_log(whole);
  }

  double operator()(double t) {
    double low = x_;
    double high = 1;
    double x = x_ > 0 ? x_ + (t - t_) / density(x_) : power_law(t);
    for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
      if (!(x > low && x < high)) x = low + (high - low) / 2;
      const double over = probability(x) - t;
      (over < 0 ? low : high) = x;
      const double next = x - over / density(x);
      if (std::fabs(next - x) <= 1e-15 * x) break;
      x = next;
    }
    x_ = std::clamp(x, low, high);
    t_ = t;
    return x_;
  }

 private:
  // Near 0 the distribution is x^a / (a B).
  double power_law(double t) const {
    return std::min(0.5, deterministic_exp((deterministic_log(t * a_) - log_constant_) / a_));
  }
  double probability(double x) const {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    if (x <= turn_) return beta_series(a_, b_, x, log_constant_) / a_;
    return 1 - beta_series(b_, a_, 1 - x, log_constant_) / b_;
  }
  double density(double x) const {
    return deterministic_exp((a_ - 1) * deterministic_log(x) + (b_ - 1) * deterministic_log(1 - x) +
                             log_constant_);
  }

  double a_;
  double b_;
  double turn_;
  double log_constant_ = 0;  // of 1 / B(a, b)
  double t_ = 0;             // the last that was asked for,
  double x_ = 0;             // and its answer
};

}  // namespace

Mixture& Mixture::add(double weight, const Distribution& distribution) {
  parts.push_back({weight, distribution});
  return *this;
}

bool operator==(const Mixture& a, const Mixture& b) { return a.parts == b.parts; }

Lognormal Lognormal::of_cv(double cv, double mean) {
  return {mean, std::sqrt(deterministic_log(1 + cv * cv))};
}

namespace {

struct Scale {
  double by;

  Distribution operator()(FixedValue d) const { return FixedValue{d.value * by}; }
  Distribution operator()(Uniform d) const { return Uniform{d.low * by, d.high * by}; }
  Distribution operator()(LogUniform d) const { return LogUniform{d.low * by, d.high * by}; }
  Distribution operator()(Normal d) const {
    d.mean *= by;
    d.sd *= by;
    if (d.least) *d.least *= by;
    if (d.most) *d.most *= by;
    return d;
  }
  Distribution operator()(Lognormal d) const { return Lognormal{d.mean * by, d.sigma}; }
  Distribution operator()(Exponential d) const { return Exponential{d.mean * by}; }
  Distribution operator()(Beta d) const { return Beta{d.a, d.b, d.scale * by}; }
  Distribution operator()(Quantiles d) const {
    for (double& value : d.values) value *= by;
    return d;
  }
  Distribution operator()(Mixture d) const {
    for (MixturePart& part : d.parts) part.distribution = scaled(part.distribution, by);
    return d;
  }
};

}  // namespace

Distribution scaled(const Distribution& distribution, double factor) {
  return std::visit(Scale{factor}, distribution);
}

Sampler::Sampler(const Distribution& distribution) {
  std::visit([this](const auto& form) { fill(form); }, distribution);
}

double Sampler::at(std::uint64_t bits) const { return at_unit(bits >> (64 - kUnitBits)); }

double Sampler::at_unit(std::uint64_t unit) const {
  switch (form_) {
    case Form::kLinear:
      return between(table_[0], table_[1], unit_to_double(unit));
    case Form::kSteps:
      return in_steps(unit);
    case Form::kTails:
      return in_tails(unit);
    case Form::kParts:
      break;
  }
  return in_parts(unit);
}

double Sampler::in_steps(std::uint64_t unit) const {
  const double place = unit_to_double(unit) * static_cast<double>(table_.size() - 1);
  const std::size_t step = std::min(static_cast<std::size_t>(place), table_.size() - 2);
  return between(table_[step], table_[step + 1], place - static_cast<double>(step));
}

double Sampler::in_tails(std::uint64_t unit) const {
  // Without branches, for either side is as likely as the other.
  const std::uint64_t upper = unit >> (kUnitBits - 1);
  // t in units of 2^-53, below 2^52: the unit, or what it lacks to the whole.
  const std::uint64_t t = unit ^ ((kUnits - 1) & (0 - upper));
  const double* side = table_.data() + upper * kSide;
  const int octave = kUnitBits - 1 - static_cast<int>(std::bit_width(t));
  if (octave >= kOctaves) {
    constexpr int kLastBits = kUnitBits - 1 - kOctaves;
    return between(side[0], side[1], (static_cast<double>(t) + 0.5) * std::ldexp(1.0, -kLastBits));
  }
  const int rest_bits = kUnitBits - 2 - octave - kStepBits;
  const auto step = static_cast<std::size_t>(t >> rest_bits) - kSteps;
  const std::size_t entry = 1 + static_cast<std::size_t>(kOctaves - 1 - octave) * kSteps + step;
  const std::uint64_t rest = t & ((std::uint64_t{1} << rest_bits) - 1);
  // 2^-rest_bits, put together from its bits.
  const auto scale = std::bit_cast<double>(static_cast<std::uint64_t>(1023 - rest_bits) << 52);
  return between(side[entry], side[entry + 1], (static_cast<double>(rest) + 0.5) * scale);
}

double Sampler::in_parts(std::uint64_t unit) const {
  const double u = unit_to_double(unit);
  std::size_t part = 0;
  while (part + 1 < parts_.size() && u >= table_[part]) ++part;
  const double first = part == 0 ? 0 : table_[part - 1];
  return parts_[part].at_unit(double_to_unit((u - first) / (table_[part] - first)));
}

template <typename Lower, typename Upper>
void Sampler::fill_tails(const Lower& lower, const Upper& upper) {
  form_ = Form::kTails;
  table_.reserve(2 * kSide);
  for (std::size_t entry = 0; entry < kSide; ++entry) {
    table_.push_back(lower(tail_probability(entry)));
  }
  for (std::size_t entry = 0; entry < kSide; ++entry) {
    table_.push_back(upper(tail_probability(entry)));
  }
  // Each piece is linear, so its mean is that of its ends.
  for (const std::size_t side : {std::size_t{0}, kSide}) {
    double from = 0;
    for (std::size_t entry = 0; entry + 1 < kSide; ++entry) {
      const double to = tail_probability(entry + 1);
      mean_ += (to - from) * (table_[side + entry] + table_[side + entry + 1]) / 2;
      from = to;
    }
  }
}

void Sampler::fill(const FixedValue& fixed) {
  table_ = {fixed.value, fixed.value};
  mean_ = fixed.value;
}

void Sampler::fill(const Uniform& uniform) {
  table_ = {uniform.low, uniform.high};
  mean_ = between(uniform.low, uniform.high, 0.5);
}

void Sampler::fill(const LogUniform& uniform) {
  const double width = deterministic_log(uniform.high / uniform.low);
  fill_tails([&](double t) { return uniform.low * deterministic_exp(width * t); },
             [&](double t) { return uniform.high * deterministic_exp(-width * t); });
}

void Sampler::fill(const Normal& normal) {
  if (normal.sd == 0) {
    double value = normal.mean;
    if (normal.least) value = std::max(value, *normal.least);
    if (normal.most) value = std::min(value, *normal.most);
    return fill(FixedValue{value});
  }
  const auto z_of = [&normal](double bound) { return (bound - normal.mean) / normal.sd; };
  // What is left out at either end.
  const double below = normal.least ? normal_probability(z_of(*normal.least)) : 0;
  const double above = normal.most ? normal_probability(-z_of(*normal.most)) : 0;
  const double kept = 1 - below - above;
  const auto bounded = [&normal](double value) {
    if (normal.least) value = std::max(value, *normal.least);
    if (normal.most) value = std::min(value, *normal.most);
    return value;
  };
  if (kept <= 0) return fill(FixedValue{bounded(normal.mean)});
  const auto quantile = [](double p) { return normal_quantile(std::clamp(p, 1e-300, 1 - 1e-16)); };
  fill_tails(
      [&](double t) { return bounded(normal.mean + normal.sd * quantile(below + t * kept)); },
      [&](double t) { return bounded(normal.mean - normal.sd * quantile(above + t * kept)); });
}

void Sampler::fill(const Lognormal& lognormal) {
  const double shift = lognormal.sigma * lognormal.sigma / 2;
  const auto value = [&](double z) {
    return lognormal.mean * deterministic_exp(lognormal.sigma * z - shift);
  };
  fill_tails([&](double t) { return value(normal_quantile(t)); },
             [&](double t) { return value(-normal_quantile(t)); });
}

void Sampler::fill(const Exponential& exponential) {
  fill_tails([&](double t) { return -exponential.mean * deterministic_log(1 - t); },
             [&](double t) { return -exponential.mean * deterministic_log(t); });
}

void Sampler::fill(const Beta& beta) {
  BetaQuantile lower(beta.a, beta.b);
  BetaQuantile upper(beta.b, beta.a);
  fill_tails([&](double t) { return beta.scale * lower(t); },
             [&](double t) { return beta.scale * (1 - upper(t)); });
}

void Sampler::fill(const Quantiles& quantiles) {
  RRFP_CHECK(quantiles.values.size() >= 2);
  form_ = Form::kSteps;
  table_ = quantiles.values;
  const auto steps = static_cast<double>(table_.size() - 1);
  for (std::size_t i = 0; i + 1 < table_.size(); ++i) {
    mean_ += (table_[i] + table_[i + 1]) / 2 / steps;
  }
}

void Sampler::fill(const Mixture& mixture) {
  form_ = Form::kParts;
  double sum = 0;
  for (const MixturePart& part : mixture.parts) sum += part.weight;
  RRFP_CHECK(sum > 0);
  double end = 0;
  for (const MixturePart& part : mixture.parts) {
    if (part.weight == 0) continue;
    end += part.weight / sum;
    table_.push_back(end);
    parts_.emplace_back(part.distribution);
    mean_ += part.weight / sum * parts_.back().mean();
  }
  table_.back() = 1;
}

}  // namespace rrfp
