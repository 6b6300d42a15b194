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
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executor/cuda_marks.h"
#include "executor/cuda_message.h"
#include "executor/cuda_nccl_communicator.h"
#include "executor/cuda_partition.h"
#include "executor/letter.h"

namespace rrfp {

class CudaStopwatch;

class CudaNcclChannel {
 public:
  struct Transfer {
    Letter letter;
    CudaMessage message;
  };
  /// A rank in the middle of a chain has four channels, which compete with its
  /// tasks for SMs: so few that all of them take an eighth of a large device, and
  /// several for each, as one thread block does not keep a fast link busy.
  static constexpr int kMostBlocks = 4;

  enum class End : std::uint8_t { kSends, kReceives };

  /// How errors call the channel and what it is for, and how long a transfer may
  /// take once it is connected.
  struct Manner {
    std::string name;
    std::function<std::string(TaskId task)> name_of_task;  ///< may be empty
    std::int64_t patience_ns = 0;
  };

  /// Waits for the other end, and moves a few bytes so that nothing is set up
  /// later. REQUIRES: both ends, at the same point of an order
  /// that all processes keep.
  static Result<std::unique_ptr<CudaNcclChannel>> open(const CudaNcclFunctions& nccl,
                                                       const ncclUniqueId& id, End end,
                                                       CudaBlocks& blocks, Manner manner,
                                                       CudaPeerWait& wait);
  ~CudaNcclChannel();
  CudaNcclChannel(const CudaNcclChannel&) = delete;
  CudaNcclChannel& operator=(const CudaNcclChannel&) = delete;

  void push(const Transfer& transfer) { waiting_.push_back(transfer); }
  /// Issues what can be issued; gives the oldest transfer that has ended, once.
  /// The error names the channel, the task that the tensor is for, and the
  /// transfer.
  Result<std::optional<Transfer>> step();
  bool idle() const { return waiting_.empty() && running_.empty(); }
  /// How long a message of `bytes` takes, once both ends have come to it: by
  /// events at the receiver, the median of some; the sender gets 0. REQUIRES:
  /// idle; both ends, at the same point of an order that all processes keep.
  Result<double> measure_ns(CudaPartition& partition, std::size_t bytes, CudaPeerWait& wait);
  bool sends() const { return end_ == End::kSends; }
  const std::string& name() const { return manner_.name; }
  CudaNcclCommunicator& communicator() { return *communicator_; }

 private:
  struct Running {
    Transfer transfer;
    std::int64_t mark = 0;
  };

  CudaNcclChannel(End end, Manner manner) : end_(end), manner_(std::move(manner)) {}
  Result<void> connect(const CudaNcclFunctions& nccl, const ncclUniqueId& id, CudaBlocks& blocks,
                       CudaPeerWait& wait);
  Result<void> warm_up(CudaBlocks& blocks, CudaPeerWait& wait);
  /// The next operation of this end, on `bytes` at `memory`.
  Result<void> issue(void* memory, std::size_t bytes);
  Result<double> measure_once_ns(CudaStopwatch& watch, CudaPartition& partition, void* memory,
                                 std::size_t bytes, CudaPeerWait& wait);
  /// None within the patience.
  std::optional<Error> late(std::int64_t since_ns) const;
  Error error(const Transfer& transfer, const std::string& what) const;

  const End end_;
  const Manner manner_;
  std::unique_ptr<CudaNcclCommunicator> communicator_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<CudaMarks> marks_;
  std::deque<Transfer> waiting_;
  bool issuing_ = false;  // the first that waits
  std::deque<Running> running_;
  std::int64_t moved_ns_ = 0;  // when the oldest transfer came to be that
};

}  // namespace rrfp
