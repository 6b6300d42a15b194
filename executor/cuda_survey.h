// What CUDA finds on this machine.
//
// Thread safety: any.
#pragma once

#include "executor/cuda_module.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// Devices and, where there is none, the reason: no driver, one that is too
/// old, none that it sees.
CudaSurvey survey_cuda();

/// How many devices there are, at least one. The error is one sentence that
/// begins with "no CUDA device".
Result<int> count_cuda_devices();

}  // namespace rrfp
