// Whether what runs rely on works on a device: its partitions and how their
// ends are seen, matrix products, the training model against the CPU's, NCCL.
// Takes seconds.
//
// Thread safety: one thread; what runs use is made anew.
#pragma once

#include <string>

#include "executor/cuda_module.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// In the order in which later checks need earlier ones; those that cannot be
/// made are not told of. REQUIRES: the device exists.
void check_cuda_device(int device, const OnCudaCheck& tell);

/// NCCL with this process alone, on the current device: communicators are made
/// and ended, and move `bytes` from the device to itself. The text is of the
/// version and the times.
Result<std::string> check_cuda_nccl(std::size_t bytes);

}  // namespace rrfp
