// Microbatches of differing lengths: the entry of "variability" that makes the
// times of a job's stages follow the tokens or images drawn for a microbatch.
// Of each task, what is linear in tokens, what is quadratic (attention), and
// what belongs to images are known from the layers.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "experiments/workload_job.h"

namespace rrfp {

/// Lines of JSON, each after `indent`, without a comma at the end.
/// REQUIRES: job.lengths.kind is not kNone.
std::string lengths_text(const WorkloadJob& job, const std::string& indent);

}  // namespace rrfp
