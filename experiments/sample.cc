#include "experiments/sample.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

/// From so many values on, each tail has a table of its own.
constexpr std::size_t kTailsFrom = 400;
constexpr double kTail = 0.05;
constexpr std::size_t kMostTailSteps = 12;
constexpr std::size_t kMostSteps = 60;
constexpr std::size_t kLeastSteps = 4;
/// So many values stand behind a step.
constexpr std::size_t kPerStep = 2;

/// Quantiles at equal steps of probability from `from` to `to`.
struct Part {
  double weight = 1;
  std::vector<double> values;
};

Part part_of(std::span<const double> ascending, double from, double to, std::size_t most_steps) {
  const double share = to - from;
  const auto behind = static_cast<std::size_t>(share * static_cast<double>(ascending.size()));
  const std::size_t steps = std::clamp(behind / kPerStep, kLeastSteps, most_steps);
  Part part{share, {}};
  for (std::size_t i = 0; i <= steps; ++i) {
    const double p = from + share * static_cast<double>(i) / static_cast<double>(steps);
    part.values.push_back(quantile(ascending, std::min(p, 1.0)));
  }
  return part;
}

std::vector<Part> parts_of(std::span<const double> ascending) {
  if (ascending.size() < kTailsFrom) return {part_of(ascending, 0, 1, kMostSteps)};
  return {part_of(ascending, 0, kTail, kMostTailSteps),
          part_of(ascending, kTail, 1 - kTail, kMostSteps),
          part_of(ascending, 1 - kTail, 1, kMostTailSteps)};
}

/// Of the distribution that is linear between the quantiles.
double moment(const std::vector<Part>& parts, int power) {
  double sum = 0;
  for (const Part& part : parts) {
    const double weight = part.weight / static_cast<double>(part.values.size() - 1);
    for (std::size_t i = 1; i < part.values.size(); ++i) {
      const double a = part.values[i - 1];
      const double b = part.values[i];
      sum += weight * (power == 1 ? (a + b) / 2 : (a * a + a * b + b * b) / 3);
    }
  }
  return sum;
}

/// Six decimals: a file that people can read.
double rounded(double value) { return std::round(value * 1e6) / 1e6; }

}  // namespace

double mean(std::span<const double> values) {
  return values.empty() ? 0
                        : std::accumulate(values.begin(), values.end(), 0.0) /
                              static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  return values.empty() ? 0 : std::sqrt(squares / static_cast<double>(values.size()));
}

double correlation(std::span<const double> a, std::span<const double> b) {
  RRFP_CHECK(a.size() == b.size());
  const double spread = standard_deviation(a) * standard_deviation(b);
  if (spread <= 0) return 0;
  const double mean_a = mean(a);
  const double mean_b = mean(b);
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - mean_a) * (b[i] - mean_b);
  return sum / static_cast<double>(a.size()) / spread;
}

double quantile(std::span<const double> ascending, double p) {
  RRFP_CHECK(!ascending.empty());
  const double place = p * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] +
         (ascending[above] - ascending[below]) * (place - static_cast<double>(below));
}

double ks_distance(std::span<const double> ascending, std::span<const double> other) {
  RRFP_CHECK(!ascending.empty() && !other.empty());
  double distance = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < ascending.size() && j < other.size()) {
    const double value = std::min(ascending[i], other[j]);
    while (i < ascending.size() && ascending[i] <= value) ++i;
    while (j < other.size() && other[j] <= value) ++j;
    distance =
        std::max(distance, std::abs(static_cast<double>(i) / static_cast<double>(ascending.size()) -
                                    static_cast<double>(j) / static_cast<double>(other.size())));
  }
  return distance;
}

Distribution quantile_distribution(std::vector<double> sample, double mean, double deviation,
                                   double least) {
  RRFP_CHECK(!sample.empty());
  std::sort(sample.begin(), sample.end());
  std::vector<Part> parts = parts_of(sample);
  const double middle = moment(parts, 1);
  const double spread = std::sqrt(std::max(0.0, moment(parts, 2) - middle * middle));
  if (deviation <= 0 || spread <= 0) return FixedValue{rounded(mean)};
  std::vector<Quantiles> tables;
  for (Part& part : parts) {
    for (double& value : part.values) {
      value = rounded(std::max(least, mean + (value - middle) * deviation / spread));
    }
    tables.push_back(Quantiles{std::move(part.values)});
  }
  if (parts.size() == 1) return std::move(tables.front());
  Mixture mixture;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    mixture.parts.push_back({rounded(parts[i].weight), std::move(tables[i])});
  }
  return mixture;
}

}  // namespace rrfp
