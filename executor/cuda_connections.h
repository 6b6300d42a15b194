// How a process's device reaches those of the other processes of a job. Its one
// kind is made of communicators of NCCL, see cuda_nccl_connections.h; this
// header is all that the rest knows of it, and needs no header of NCCL.
//
// Thread safety: one thread.
#pragma once

#include <memory>

#include "executor/cuda_lane_gather.h"
#include "executor/cuda_module.h"
#include "executor/cuda_partition.h"

namespace rrfp {

class CudaConnections {
 public:
  virtual ~CudaConnections() = default;
  /// For the devices' versions, for people: "NCCL 2.28.9".
  virtual std::string describe() const = 0;
  /// Letters go over `control`, tensors from device to device. `self` is this
  /// object, and is kept.
  virtual std::unique_ptr<Transport> transport(const std::shared_ptr<CudaConnections>& self,
                                               Transport& control) = 0;
  /// REQUIRES: more than one lane. `self` is this object, and is kept.
  virtual std::unique_ptr<CudaLaneGather> lane_gather(
      const std::shared_ptr<CudaConnections>& self) = 0;
  /// The links of all channels of the job. All processes call it at the same
  /// point; where one could not do what comes `before`, all get its error.
  virtual Result<std::vector<LinkFigures>> measure(const CudaPeers& peers,
                                                   std::size_t message_bytes,
                                                   const Result<DeviceTimes>& before) = 0;
  /// Gives up: nothing that is in a stream waits for a peer any more. The peers
  /// learn nothing of it.
  virtual void abort() = 0;
  /// That transfers keep busy when all of them are under way.
  virtual int sms() const = 0;
};

/// All processes of the job call it at the same point. The error names the
/// channel, the process at fault, or what NCCL lacks.
Result<std::shared_ptr<CudaConnections>> connect_cuda(
    const CudaSettings& settings, const CudaPeers& peers,
    std::shared_ptr<CudaDevicePartitions> partitions);

}  // namespace rrfp
