// The communicators of a process: one for each channel of tensors that it sends
// or receives on, and one for its group of lanes.
//
// Connections of NCCL are made at first use, which is a hidden rendezvous; so
// all of them are made here, and used once, in one order of the whole job; the
// lanes' for sums of all sizes, which NCCL may carry in different ways.
//
// Invariants
//  1. Either all processes are connected, or none is. Then all have one error,
//     but where a process is lost or stuck: each says how it noticed that.
//
// Not thread safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "executor/cuda_connections.h"
#include "executor/cuda_nccl_channel.h"
#include "executor/cuda_nccl_meeting.h"

namespace rrfp {

class CudaNcclConnections final : public CudaConnections {
 public:
  static Result<std::shared_ptr<CudaNcclConnections>> connect(
      const CudaSettings& settings, const CudaPeers& peers,
      std::shared_ptr<CudaDevicePartitions> partitions);
  ~CudaNcclConnections() override;

  std::string describe() const override { return "NCCL " + version_; }
  std::unique_ptr<Transport> transport(const std::shared_ptr<CudaConnections>& self,
                                       Transport& control) override;
  std::unique_ptr<CudaLaneGather> lane_gather(
      const std::shared_ptr<CudaConnections>& self) override;
  Result<std::vector<LinkFigures>> measure(const CudaPeers& peers, std::size_t message_bytes,
                                           const Result<DeviceTimes>& before) override;
  void abort() override;
  int sms() const override;

  /// No tensor is on its way.
  bool idle() const;

  /// Null where no tensor travels that way.
  CudaNcclChannel* to(int endpoint) const { return find(to_, endpoint); }
  CudaNcclChannel* from(int endpoint) const { return find(from_, endpoint); }
  /// In the order that all processes keep.
  const std::vector<std::unique_ptr<CudaNcclChannel>>& channels() const { return channels_; }
  CudaPartition& partition() const { return partitions_->partition(0); }
  std::int64_t look_every_ns() const { return settings_.look_every_ns; }
  std::int64_t patience_ns() const { return settings_.patience_ns; }

 private:
  using Ends = std::map<int, CudaNcclChannel*>;

  CudaNcclConnections(const CudaSettings& settings,
                      std::shared_ptr<CudaDevicePartitions> partitions)
      : settings_(settings), partitions_(std::move(partitions)) {}
  static CudaNcclChannel* find(const Ends& ends, int endpoint) {
    const auto found = ends.find(endpoint);
    return found == ends.end() ? nullptr : found->second;
  }
  Result<void> open(const CudaNcclFunctions& nccl, const CudaPeers& peers,
                    const CudaMeeting& meeting, CudaPeerWait& wait);
  Result<void> open_channels(const CudaNcclFunctions& nccl, const CudaPeers& peers,
                             const std::vector<ncclUniqueId>& ids, CudaPeerWait& wait);
  Result<void> open_lanes(const CudaNcclFunctions& nccl, const CudaPeers& peers,
                          const ncclUniqueId& id, CudaPeerWait& wait);
  Result<void> warm_up_lanes(CudaPeerWait& wait);
  /// What all processes do together, in at most the time that they have to connect.
  CudaPeerWait wait_for_all(const CudaPeers& peers, const char* what) const;
  /// Where this process cannot go on the others are told, and nothing waits for them.
  void give_up_unless(const Result<void>& well, CudaPeerWait& wait);

  const CudaSettings settings_;
  const std::shared_ptr<CudaDevicePartitions> partitions_;
  std::string version_;
  std::vector<std::unique_ptr<CudaNcclChannel>> channels_;
  Ends to_;
  Ends from_;
  std::unique_ptr<CudaNcclCommunicator> lanes_;  // null with one lane
};

/// "channel rank 0 -> rank 1", with lane and replica where there are several.
std::string channel_name(const Grid& grid, int from, int to);

}  // namespace rrfp
