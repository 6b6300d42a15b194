// What the processes of a job tell each other before NCCL connects them: that
// each is able to, on which GPU of which host, and the identifiers of the
// communicators that each will make.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/cuda_module.h"
#include "executor/cuda_nccl_functions.h"

namespace rrfp {

/// Fixed size and trivially copyable: what travels is these bytes.
struct CudaGreeting {
  char host[128] = {};
  char boot[40] = {};          ///< of the host: hosts may have one name
  char gpu[32] = {};           ///< the address on the host's bus
  std::uint64_t channels = 0;  ///< a digest of the list
  ncclUniqueId lanes = {};     ///< of its group, where it is lane 0
};

/// Each must have one of its own. The error names two that do not.
Result<void> check_gpus(const std::vector<CudaGreeting>& greetings);

struct CudaMeeting {
  std::vector<CudaGreeting> greetings;    ///< by endpoint
  std::vector<ncclUniqueId> channel_ids;  ///< by channel, as their senders made them
};

/// REQUIRES: all processes call it at the same point, with the same channels.
/// The error names the process that cannot connect, or two that have the same
/// GPU, in the same words everywhere; or, where all could not be asked, the one
/// that is lost or has not come, as each has noticed it.
Result<CudaMeeting> meet(const CudaSettings& settings, const CudaPeers& peers,
                         const Result<CudaNcclFunctions>& nccl);

}  // namespace rrfp
