// When kernels of the double are loaded: each at its first use on a device, or
// all at the start, as CUDA_MODULE_LOADING says. To load one the driver may wait
// for the device; where a kernel of NCCL waits there, it is an objection.
//
// Thread safety: any.
#pragma once

#include <string>

namespace rrfp {

/// On the current device.
void load_kernel(const std::string& kernel);
/// One that a library chooses by shapes, and loads by itself.
void load_library_kernel(const std::string& kernel);

}  // namespace rrfp
