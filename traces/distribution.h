// Distributions of factors and times as a person writes them, and samplers made
// of them. A sampler turns 64 random bits into a value by a table lookup, so a
// draw costs a few ns and is the same number on every machine.
//
// Invariants
//  1. at() is a pure function of its bits: one draw, one piece of randomness.
//     It rises with them (but for a mixture, whose parts follow each other), so
//     samplers that share their bits are comonotone.
//  2. Tables are finest in the tails: 32 steps in each halving of the
//     probability, down to 2^-31. Between two entries values are linear.
//  3. Only operations that IEEE rounds exactly are used (deterministic_math.h).
//
// Thread safety: immutable values.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace rrfp {

struct FixedValue {
  double value = 1;

  friend bool operator==(const FixedValue&, const FixedValue&) = default;
};

struct Uniform {
  double low = 0;
  double high = 1;

  friend bool operator==(const Uniform&, const Uniform&) = default;
};

/// The logarithm is uniform. REQUIRES: low > 0, and high / low is finite.
struct LogUniform {
  double low = 1;
  double high = 1;

  friend bool operator==(const LogUniform&, const LogUniform&) = default;
};

/// Where there is a bound, what lies beyond it is left out and the rest scaled.
struct Normal {
  double mean = 1;
  double sd = 0;
  std::optional<double> least;
  std::optional<double> most;

  friend bool operator==(const Normal&, const Normal&) = default;
};

/// `sigma` is the standard deviation of the logarithm.
struct Lognormal {
  double mean = 1;
  double sigma = 0;

  /// `cv`: standard deviation over mean.
  static Lognormal of_cv(double cv, double mean = 1);

  friend bool operator==(const Lognormal&, const Lognormal&) = default;
};

struct Exponential {
  double mean = 1;

  friend bool operator==(const Exponential&, const Exponential&) = default;
};

/// From 0 to `scale`. REQUIRES: a > 0, b > 0.
struct Beta {
  double a = 1;
  double b = 1;
  double scale = 1;

  friend bool operator==(const Beta&, const Beta&) = default;
};

/// Values at equal steps of probability from 0 to 1, linear between them.
/// REQUIRES: at least two, ascending.
struct Quantiles {
  std::vector<double> values;

  friend bool operator==(const Quantiles&, const Quantiles&) = default;
};

struct Mixture;
struct MixturePart;

using Distribution = std::variant<FixedValue, Uniform, LogUniform, Normal, Lognormal, Exponential,
                                  Beta, Quantiles, Mixture>;

/// One of its parts, drawn by weight. REQUIRES: weights of at least 0, and a
/// sum above 0.
struct Mixture {
  std::vector<MixturePart> parts;

  /// One more part. Returns the mixture, for the next.
  Mixture& add(double weight, const Distribution& distribution);

  friend bool operator==(const Mixture& a, const Mixture& b);
};

struct MixturePart {
  double weight = 1;
  Distribution distribution;

  friend bool operator==(const MixturePart&, const MixturePart&) = default;
};

/// The distribution of `factor` times what `distribution` gives, as times are
/// brought from a unit to ns. REQUIRES: factor > 0.
Distribution scaled(const Distribution& distribution, double factor);

class Sampler {
 public:
  /// REQUIRES: what the structs above say.
  explicit Sampler(const Distribution& distribution);

  /// The value at the probability that `bits` stand for.
  double at(std::uint64_t bits) const;

  /// The mean of what at() gives, exactly.
  double mean() const { return mean_; }

 private:
  enum class Form : std::uint8_t { kLinear, kSteps, kTails, kParts };

  template <typename Lower, typename Upper>
  void fill_tails(const Lower& lower, const Upper& upper);
  void fill(const FixedValue& fixed);
  void fill(const Uniform& uniform);
  void fill(const LogUniform& uniform);
  void fill(const Normal& normal);
  void fill(const Lognormal& lognormal);
  void fill(const Exponential& exponential);
  void fill(const Beta& beta);
  void fill(const Quantiles& quantiles);
  void fill(const Mixture& mixture);

  double at_unit(std::uint64_t unit) const;
  double in_steps(std::uint64_t unit) const;
  double in_tails(std::uint64_t unit) const;
  double in_parts(std::uint64_t unit) const;

  Form form_ = Form::kLinear;
  double mean_ = 0;
  /// kLinear: both ends. kSteps: the quantiles. kTails: both sides, the lower
  /// one first, each from probability 0 to 1/2. kParts: the end of each part.
  std::vector<double> table_;
  std::vector<Sampler> parts_;
};

}  // namespace rrfp
