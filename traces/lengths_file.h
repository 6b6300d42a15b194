// Lengths from a file of one column of numbers, such as the token counts of a
// data set, as quantiles that a scenario can hold.
//
// Thread safety: pure functions but for the file.
#pragma once

#include <string>

#include "scheduler_core/result.h"
#include "traces/distribution.h"

namespace rrfp {

/// Steps of probability of the table: 0.1 % each.
inline constexpr int kLengthSteps = 1000;

/// Reads a CSV, plain or compressed. With `column` the first line names the
/// columns, without it each line is a number. The error names file and line.
Result<Quantiles> read_lengths(const std::string& path, const std::string& column);

/// The quantiles of `values` at kLengthSteps equal steps of probability; fewer
/// steps where there are fewer values. REQUIRES: at least two values.
Quantiles quantiles_of(std::vector<double> values);

}  // namespace rrfp
