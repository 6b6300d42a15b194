// What `rrfp init` makes of a job: a table of its stages for a person, and a
// scenario that compares policies within the memory that is left.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "experiments/workload_job.h"

namespace rrfp {

/// Per stage: what it holds, its times, and its memory.
std::string workload_table(const WorkloadJob& job);

/// One line for each rank whose memory holds less than its weights, gradients
/// and optimizer and one activation of each of its stages.
std::vector<std::string> memory_warnings(const WorkloadJob& job);

/// The text of a scenario file (rrfp.scenario/1). How it was made stands at
/// its head. Policies that need more memory than there is stand as comments;
/// where the job itself does not fit, budgets are left out.
std::string workload_scenario(const WorkloadJob& job);

}  // namespace rrfp
