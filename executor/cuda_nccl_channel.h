// A channel from one rank to another: a communicator of the two and a stream of
// its own at each end. Transfers are issued in the order in which they are
// pushed, so both ends pair them by that order alone, whatever order tasks ran
// in.
//
// A receive blocks its stream until the sender comes; so one is pushed only
// once its send was announced, and then nothing in the stream waits for a task
// that has yet to run.
//
// Not thread safe.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "executor/cuda_marks.h"
#include "executor/cuda_message.h"
#include "executor/cuda_nccl_communicator.h"
#include "executor/cuda_partition.h"
#include "executor/letter.h"

namespace rrfp {

class CudaNcclChannel {
 public:
  struct Transfer {
    Letter letter;
    CudaMessage message;
  };
  enum class End : std::uint8_t { kSends, kReceives };

  /// Waits for the other end up to `connect_ns`, and moves a few bytes so that
  /// nothing is set up later. From then on a transfer may take `patience_ns`.
  /// `name`: of the channel, for errors. REQUIRES: both ends, at the same point
  /// of an order that all processes keep.
  static Result<std::unique_ptr<CudaNcclChannel>> open(const CudaNcclFunctions& nccl,
                                                       const ncclUniqueId& id, End end,
                                                       CudaBlocks& blocks, std::string name,
                                                       std::int64_t connect_ns,
                                                       std::int64_t patience_ns);
  ~CudaNcclChannel();
  CudaNcclChannel(const CudaNcclChannel&) = delete;
  CudaNcclChannel& operator=(const CudaNcclChannel&) = delete;

  void push(const Transfer& transfer) { waiting_.push_back(transfer); }
  /// Issues what can be issued; gives the oldest transfer that has ended, once.
  /// The error names the channel and the transfer.
  Result<std::optional<Transfer>> step();
  bool idle() const { return waiting_.empty() && running_.empty(); }
  /// How long a message of `bytes` takes, once both ends have come to it: by
  /// events at the receiver, the median of some; the sender gets 0. REQUIRES:
  /// idle; both ends, at the same point of an order that all processes keep.
  Result<double> measure_ns(CudaPartition& partition, std::size_t bytes);
  bool sends() const { return end_ == End::kSends; }
  CudaNcclCommunicator& communicator() { return *communicator_; }

 private:
  struct Running {
    Transfer transfer;
    std::int64_t mark = 0;
  };

  CudaNcclChannel(End end, std::string name, std::int64_t patience_ns)
      : end_(end), name_(std::move(name)), patience_ns_(patience_ns) {}
  Result<void> warm_up(CudaBlocks& blocks, std::int64_t connect_ns);
  /// The next operation of this end, on `bytes` at `memory`.
  Result<void> issue(void* memory, std::size_t bytes);
  Result<double> measure_once_ns(CudaPartition& partition, void* memory, std::size_t bytes);
  Result<void> wait_for_stream();
  /// None within the patience.
  std::optional<Error> late(std::int64_t since_ns) const;
  Error error(const Transfer& transfer, const std::string& what) const;

  const End end_;
  const std::string name_;
  std::int64_t patience_ns_;
  std::unique_ptr<CudaNcclCommunicator> communicator_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<CudaMarks> marks_;
  std::deque<Transfer> waiting_;
  bool issuing_ = false;  // the first that waits
  std::deque<Running> running_;
  std::int64_t moved_ns_ = 0;  // when the oldest transfer came to be that
};

}  // namespace rrfp
