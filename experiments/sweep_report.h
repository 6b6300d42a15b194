// A sweep as tables for people: one per point of the grid.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "experiments/sweep.h"
#include "experiments/sweep_summary.h"

namespace rrfp {

/// "/network/latency_us = 10, /seed = 3"; empty where there is no grid.
std::string describe_point(const Sweep& sweep, std::size_t point);

/// `summaries`: one per point, in order.
std::string describe_sweep(const Sweep& sweep,
                           const std::vector<std::vector<PolicySummary>>& summaries);

}  // namespace rrfp
