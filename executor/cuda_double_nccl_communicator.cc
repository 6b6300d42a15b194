#include "executor/cuda_double_nccl_communicator.h"

#include <utility>

#include "executor/cuda_double_devices.h"
#include "executor/cuda_double_nccl_errors.h"

namespace rrfp {

DoubleNcclCommunicator::DoubleNcclCommunicator(std::unique_ptr<DoubleNcclBoard> board, int rank,
                                               int device, bool blocking)
    : link_(std::make_shared<DoubleNcclLink>()), blocking_(blocking) {
  link_->board = std::move(board);
  link_->rank = rank;
  link_->device = device;
}

ncclResult_t DoubleNcclCommunicator::ask() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (link_->is_over() && nccl_verdict() != ncclSuccess) return nccl_verdict();
  const bool first = ++asked_ == 1;
  switch (state_) {
    case State::kFailed:
      return failure_;
    case State::kAttaching:
      return link_->board->all_attached() ? check_devices() : ncclInProgress;
    case State::kIssuing:
      return first || !connected() ? ncclInProgress : enqueue_issued();
    case State::kFinalizing:
      if (first || !idle()) return ncclInProgress;
      state_ = State::kFinalized;
      return ncclSuccess;
    default:
      return ncclSuccess;
  }
}

ncclResult_t DoubleNcclCommunicator::wait() {
  ncclResult_t result = ask();
  while (result == ncclInProgress && !link_->stopped.load()) {
    pause_for_nccl();
    result = ask();
  }
  return result != ncclInProgress
             ? result
             : nccl_failure(ncclInvalidUsage, "the communicator was aborted meanwhile");
}

// Devices are those of one host. NCCL gives this to those whose device it is; here all learn.
ncclResult_t DoubleNcclCommunicator::check_devices() {
  const DoubleNcclBoard& board = *link_->board;
  for (int rank = 1; rank < board.members(); ++rank) {
    for (int other = 0; other < rank; ++other) {
      if (board.device_of(rank) != board.device_of(other)) continue;
      state_ = State::kFailed;
      failure_ = nccl_failure(ncclInvalidUsage, "Duplicate GPU detected : rank " +
                                                    std::to_string(other) + " and rank " +
                                                    std::to_string(rank) + " both on CUDA device " +
                                                    std::to_string(board.device_of(rank)));
      return failure_;
    }
  }
  state_ = State::kReady;
  return ncclSuccess;
}

ncclResult_t DoubleNcclCommunicator::check_ready(const std::string& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (state_ == State::kFailed) return failure_;
  if (in_progress()) {
    return nccl_objection(call +
                          " is called on a communicator that is in progress: "
                          "ncclCommGetAsyncError has yet to give ncclSuccess");
  }
  if (state_ == State::kFinalized) {
    return nccl_objection(call + " is called on a communicator that was finalized");
  }
  return ncclSuccess;
}

ncclResult_t DoubleNcclCommunicator::begin(State state) {
  state_ = state;
  asked_ = 0;
  return ncclInProgress;
}

ncclResult_t DoubleNcclCommunicator::check(const DoubleNcclOperation& operation) {
  const ncclResult_t fit = check_operation(operation, link_->board->members());
  return fit == ncclSuccess ? check_ready(operation.call()) : fit;
}

ncclResult_t DoubleNcclCommunicator::issue(const std::vector<DoubleNcclOperation>& operations) {
  if (const ncclResult_t ready = check_ready(operations.front().call()); ready != ncclSuccess) {
    return ready;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  DoubleNcclLaunch launch;
  std::uint64_t collectives = collectives_;
  const ncclResult_t made =
      make_launch(operations, {link_->rank, link_->board->members()}, collectives, launch);
  if (made != ncclSuccess) return made;
  collectives_ = collectives;
  launch.number = launches_++;
  for (const DoubleNcclTransfer& transfer : launch.transfers) {
    const int from = transfer.outgoing ? link_->rank : transfer.peer;
    const int to = transfer.outgoing ? transfer.peer : link_->rank;
    link_->board->ring(from, to).use_end(transfer.outgoing);
  }
  issued_ = std::move(launch);
  return begin(State::kIssuing);
}

bool DoubleNcclCommunicator::connected() const {
  for (const DoubleNcclTransfer& transfer : issued_->transfers) {
    const int rank = link_->rank;
    const DoubleNcclRing& ring = transfer.outgoing ? link_->board->ring(rank, transfer.peer)
                                                   : link_->board->ring(transfer.peer, rank);
    if (!ring.connected()) return false;
  }
  return true;
}

ncclResult_t DoubleNcclCommunicator::enqueue_issued() {
  auto launch = std::make_shared<DoubleNcclLaunch>(std::move(*issued_));
  issued_.reset();
  const auto kernel = std::make_shared<DoubleSpinningKernel>(link_->device);
  const cudaError_t code = enqueue_loaded(
      launch->stream, launch->work, [link = link_, launch, kernel] { work_off(*link, *launch); });
  state_ = State::kReady;
  // Work that is objected to is not done, and what follows it waits for it.
  if (code != cudaSuccess) link_->stopped.store(true);
  return nccl_verdict();
}

ncclResult_t DoubleNcclCommunicator::finalize() {
  if (const ncclResult_t ready = check_ready("ncclCommFinalize"); ready != ncclSuccess) {
    return ready;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  return begin(State::kFinalizing);
}

ncclResult_t DoubleNcclCommunicator::destroy() {
  if (blocking_ && nccl_verdict() == ncclSuccess) {
    while (!idle() && !link_->is_over()) pause_for_nccl();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool pending = !idle() && !link_->is_over();
  link_->stopped.store(true);
  if (in_progress()) {
    return nccl_objection(
        "ncclCommDestroy is called on a communicator that is in progress: "
        "ncclCommGetAsyncError has yet to give ncclSuccess");
  }
  if (pending) {
    return nccl_objection(
        "ncclCommDestroy is called on a communicator whose work is still in a "
        "stream: finalize it, and wait for that");
  }
  return nccl_verdict();
}

void DoubleNcclCommunicator::abort() {
  link_->stopped.store(true);
  const std::lock_guard<std::mutex> lock(mutex_);
  issued_.reset();
}

}  // namespace rrfp
