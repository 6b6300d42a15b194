// What a sample of numbers looks like, and how two differ.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <vector>

#include "traces/distribution.h"

namespace rrfp {

double mean(std::span<const double> values);
/// Of the whole, not of a sample of it.
double standard_deviation(std::span<const double> values);

/// Pearson's; 0 where one of them does not vary. REQUIRES: equal sizes.
double correlation(std::span<const double> a, std::span<const double> b);

/// The value below which a share `p` of the sample lies, linear between two.
/// REQUIRES: ascending, not empty, 0 <= p <= 1.
double quantile(std::span<const double> ascending, double p);

/// Kolmogorov-Smirnov: the largest difference between the shares of both that
/// lie below a value. REQUIRES: ascending, not empty.
double ks_distance(std::span<const double> ascending, std::span<const double> other);

/// The quantiles of a sample, finer in both tails where it is large enough,
/// moved and stretched so that the distribution has this mean and standard
/// deviation, with values of at least `least`. Named families are not used:
/// none fits what sequence lengths are like. REQUIRES: not empty.
Distribution quantile_distribution(std::vector<double> sample, double mean, double deviation,
                                   double least);

}  // namespace rrfp
