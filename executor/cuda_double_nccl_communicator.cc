#include "executor/cuda_double_nccl_communicator.h"

#include <utility>

#include "executor/cuda_double_nccl_errors.h"

namespace rrfp {

namespace {

// By the numbers of ncclDataType_t.
constexpr std::size_t kTypeBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

std::size_t bytes_of(const DoubleNcclOperation& operation) {
  return operation.count * kTypeBytes[operation.datatype];
}

DoubleNcclHead head_of(const DoubleNcclOperation& operation) {
  DoubleNcclHead head;
  head.datatype = static_cast<std::uint32_t>(operation.datatype);
  head.bytes = bytes_of(operation);
  return head;
}

std::string name_of(const std::vector<DoubleNcclOperation>& operations) {
  if (operations.size() > 1) {
    return "a group of " + std::to_string(operations.size()) + " NCCL operations";
  }
  const DoubleNcclOperation& only = operations.front();
  switch (only.kind) {
    case DoubleNcclOperation::Kind::kSend:
      return "an NCCL send to rank " + std::to_string(only.peer);
    case DoubleNcclOperation::Kind::kReceive:
      return "an NCCL receive from rank " + std::to_string(only.peer);
    default:
      return "an NCCL all-gather";
  }
}

// NCCL sends to a member itself only where it receives in the same group.
bool own_messages_pair_up(const DoubleNcclLaunch& launch, int rank) {
  int surplus = 0;
  for (const DoubleNcclTransfer& transfer : launch.transfers) {
    if (transfer.peer == rank) surplus += transfer.outgoing ? 1 : -1;
  }
  return surplus == 0;
}

}  // namespace

const char* DoubleNcclOperation::call() const {
  switch (kind) {
    case Kind::kSend:
      return "ncclSend";
    case Kind::kReceive:
      return "ncclRecv";
    default:
      return "ncclAllGather";
  }
}

DoubleNcclCommunicator::DoubleNcclCommunicator(std::unique_ptr<DoubleNcclBoard> board, int rank,
                                               bool blocking)
    : link_(std::make_shared<DoubleNcclLink>()), blocking_(blocking) {
  link_->board = std::move(board);
  link_->rank = rank;
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

ncclResult_t DoubleNcclCommunicator::check(const DoubleNcclOperation& operation) {
  const std::string call = operation.call();
  if (operation.datatype < 0 || operation.datatype >= ncclNumTypes) {
    return nccl_failure(ncclInvalidArgument,
                        call + " : invalid type " + std::to_string(operation.datatype));
  }
  if (operation.stream == nullptr) {
    return nccl_failure(ncclInvalidArgument, call + " : the double has no default stream");
  }
  const bool collective = operation.kind == DoubleNcclOperation::Kind::kAllGather;
  const int members = link_->board->members();
  if (!collective && (operation.peer < 0 || operation.peer >= members)) {
    return nccl_failure(ncclInvalidArgument,
                        call + " : invalid peer " + std::to_string(operation.peer) +
                            " (should be >= 0 and < " + std::to_string(members) + ")");
  }
  const bool sends = operation.kind != DoubleNcclOperation::Kind::kReceive;
  const bool receives = operation.kind != DoubleNcclOperation::Kind::kSend;
  if (operation.count > 0 &&
      ((sends && operation.from == nullptr) || (receives && operation.to == nullptr))) {
    return nccl_failure(ncclInvalidArgument, call + " : a buffer is null");
  }
  return check_ready(call);
}

ncclResult_t DoubleNcclCommunicator::begin(State state) {
  state_ = state;
  asked_ = 0;
  return ncclInProgress;
}

ncclResult_t DoubleNcclCommunicator::issue(const std::vector<DoubleNcclOperation>& operations) {
  if (const ncclResult_t ready = check_ready(operations.front().call()); ready != ncclSuccess) {
    return ready;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  DoubleNcclLaunch launch;
  launch.stream = operations.front().stream;
  launch.work.name = name_of(operations);
  for (const DoubleNcclOperation& operation : operations) {
    if (operation.stream != launch.stream) {
      return nccl_objection(
          "a group has operations of one communicator in two streams, "
          "which the double does not do");
    }
    add(launch, operation);
  }
  if (!own_messages_pair_up(launch, link_->rank)) {
    return nccl_failure(ncclInvalidUsage,
                        "Trying to send to self without a matching recv, or the other way");
  }
  launch.number = launches_++;
  for (const DoubleNcclTransfer& transfer : launch.transfers) {
    const int from = transfer.outgoing ? link_->rank : transfer.peer;
    const int to = transfer.outgoing ? transfer.peer : link_->rank;
    link_->board->ring(from, to).use_end(transfer.outgoing);
  }
  issued_ = std::move(launch);
  return begin(State::kIssuing);
}

void DoubleNcclCommunicator::add(DoubleNcclLaunch& launch, const DoubleNcclOperation& operation) {
  if (operation.kind == DoubleNcclOperation::Kind::kAllGather) {
    add_all_gather(launch, operation);
  } else {
    add_message(launch, operation);
  }
}

void DoubleNcclCommunicator::add_message(DoubleNcclLaunch& launch,
                                         const DoubleNcclOperation& operation) {
  DoubleNcclTransfer transfer;
  transfer.outgoing = operation.kind == DoubleNcclOperation::Kind::kSend;
  transfer.peer = operation.peer;
  transfer.head = head_of(operation);
  // What is sent is only read.
  transfer.memory =
      static_cast<std::byte*>(transfer.outgoing ? const_cast<void*>(operation.from) : operation.to);
  if (transfer.head.bytes > 0) {
    launch.work.accesses.push_back({transfer.memory, transfer.head.bytes, !transfer.outgoing});
  }
  launch.transfers.push_back(transfer);
}

void DoubleNcclCommunicator::add_all_gather(DoubleNcclLaunch& launch,
                                            const DoubleNcclOperation& operation) {
  const auto* const mine = static_cast<const std::byte*>(operation.from);
  auto* const all = static_cast<std::byte*>(operation.to);
  DoubleNcclTransfer transfer;
  transfer.head = head_of(operation);
  transfer.head.kind = DoubleNcclHead::Kind::kAllGather;
  transfer.head.number = collectives_++;
  const std::size_t bytes = transfer.head.bytes;
  const int members = link_->board->members();
  for (int rank = 0; rank < members; ++rank) {
    std::byte* const part = all + static_cast<std::size_t>(rank) * bytes;
    if (rank == link_->rank) {
      if (bytes > 0) launch.copies.push_back({part, mine, bytes});
      continue;
    }
    transfer.peer = rank;
    for (const bool outgoing : {true, false}) {
      transfer.outgoing = outgoing;
      transfer.memory = outgoing ? const_cast<std::byte*>(mine) : part;
      launch.transfers.push_back(transfer);
    }
  }
  if (bytes > 0) {
    launch.work.accesses.push_back({mine, bytes, false});
    launch.work.accesses.push_back({all, bytes * static_cast<std::size_t>(members), true});
  }
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
  const cudaError_t code =
      enqueue(launch->stream, launch->work, [link = link_, launch] { work_off(*link, *launch); });
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
