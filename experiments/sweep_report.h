// A sweep as tables for people: one per point of the grid.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "experiments/sweep.h"
#include "experiments/sweep_summary.h"

namespace rrfp {

/// `summaries`: one per point, in order.
std::string describe_sweep(const Sweep& sweep,
                           const std::vector<std::vector<PolicySummary>>& summaries);

}  // namespace rrfp
