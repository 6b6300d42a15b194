// One member's communicator of the double, as the host's thread sees it.
//
//  1. It is in progress from its making until all members have attached, from the
//     issue of operations until they are in the stream, and from finalize() until
//     its streams have done them. It gets on only when it is asked, and not at the
//     first time: whoever takes issued work for enqueued work is found out.
//  2. The first operation between two members stays in progress until both have
//     issued theirs, for NCCL connects them only then.
//  3. While it is in progress it can be asked and aborted; any other call is an
//     objection.
//
// Thread safety: any.
#pragma once

#include <nccl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "executor/cuda_double_nccl_operation.h"

namespace rrfp {

class DoubleNcclCommunicator {
 public:
  /// REQUIRES: the board has been attached to as `rank`, on `device`.
  DoubleNcclCommunicator(std::unique_ptr<DoubleNcclBoard> board, int rank, int device,
                         bool blocking);

  bool blocking() const { return blocking_; }
  int device() const { return link_->device; }
  /// What ncclCommGetAsyncError gives; the communicator gets on by it.
  ncclResult_t ask();
  /// Asks until it is no longer in progress.
  ncclResult_t wait();
  /// Whether operations may be issued or it may be finalized, by the function `call`.
  ncclResult_t check_ready(const std::string& call);
  ncclResult_t check(const DoubleNcclOperation& operation);
  /// As one launch; in progress from here on. REQUIRES: check()ed, not empty.
  ncclResult_t issue(const std::vector<DoubleNcclOperation>& operations);
  ncclResult_t finalize();
  /// Objects where NCCL would wait for what may never come.
  ncclResult_t destroy();
  /// Its launches will end without data. The other members are not told.
  void abort();

 private:
  enum class State { kAttaching, kReady, kIssuing, kFinalizing, kFinalized, kFailed };

  bool in_progress() const {
    return state_ == State::kAttaching || state_ == State::kIssuing || state_ == State::kFinalizing;
  }
  ncclResult_t begin(State state);
  ncclResult_t check_devices();
  bool connected() const;
  ncclResult_t enqueue_issued();
  bool idle() const { return link_->launches_done.load() == launches_; }

  const std::shared_ptr<DoubleNcclLink> link_;  // launches hold it as well
  const bool blocking_;
  std::mutex mutex_;
  State state_ = State::kAttaching;
  ncclResult_t failure_ = ncclSuccess;
  int asked_ = 0;  // since it went into progress
  std::optional<DoubleNcclLaunch> issued_;
  std::uint64_t launches_ = 0;
  std::uint64_t collectives_ = 0;
};

}  // namespace rrfp
