// What is said about a job: a table of its stages, what does not fit, and the
// words at the head of its scenario.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "experiments/workload_job.h"

namespace rrfp {

/// Per stage: what it holds, its times, and its memory.
std::string workload_table(const WorkloadJob& job);

/// "16 x H100 SXM: pp 8, tp 1, dp 2".
std::string spread_of(const WorkloadJob& job);

/// Comments: what the job is, how its numbers came about, the command that
/// makes the scenario again, and the table.
std::string workload_head(const WorkloadJob& job);

/// By rank, in bytes: the largest activation of its stages, in whole MB.
std::vector<double> largest_activations(const WorkloadJob& job);

/// Those whose memory holds less than their weights, gradients and optimizer
/// and one activation of each of their stages.
std::vector<int> ranks_that_lack(const WorkloadJob& job);

/// By how much each of them is over and what to do about it, a line each;
/// empty where all fit.
std::string lack_of_memory(const WorkloadJob& job);

}  // namespace rrfp
