// What the driver reads from the environment when a process first calls it, and
// NCCL when it is first used. A user's own settings stay as they are.
//
// Thread safety: comes before the process has other threads.
#pragma once

#include <cstdlib>

namespace rrfp {

/// REQUIRES: before the first call of CUDA. `connected`: transfers may wait on
/// the device for other processes.
inline void set_cuda_environment(bool connected) {
  // As many queues to the device as it can have. By default there are 8, streams beyond that share
  // them, and work would stand behind a transfer of another stream that waits for its peer.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  // A kernel that is loaded at its first use may wait for the device, as an allocation may. All of
  // cuBLAS is loaded as well, which takes time and memory; so only where it is needed.
  if (!connected) return;
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  // From NCCL 2.22 on, each way to carry a collective (by its size NCCL chooses one) connects at
  // its first use, which allocates, and so waits for the device on which a transfer may wait for a
  // peer. So all ways connect when a communicator is made, at the cost of the memory of those that
  // are never used.
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}

}  // namespace rrfp
