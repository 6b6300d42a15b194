// What `rrfp init` makes of a job: a scenario that compares policies within the
// memory that is left.
//
// Thread safety: pure function.
#pragma once

#include <string>
#include <string_view>

#include "experiments/workload_job.h"

namespace rrfp {

/// The preset of a job whose user names no worlds.
inline constexpr std::string_view kAssumedWorld = "healthy-dedicated";

/// The text of a scenario file (rrfp.scenario/1). How it was made stands at
/// its head. Policies that need more memory than there is stand as comments;
/// where the job itself does not fit, budgets are left out.
std::string workload_scenario(const WorkloadJob& job);

}  // namespace rrfp
