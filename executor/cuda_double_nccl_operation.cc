#include "executor/cuda_double_nccl_operation.h"

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

void add_message(DoubleNcclLaunch& launch, const DoubleNcclOperation& operation) {
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

void add_all_gather(const DoubleNcclMembership& member, DoubleNcclLaunch& launch,
                    const DoubleNcclOperation& operation, std::uint64_t number) {
  const auto* const mine = static_cast<const std::byte*>(operation.from);
  auto* const all = static_cast<std::byte*>(operation.to);
  DoubleNcclTransfer transfer;
  transfer.head = head_of(operation);
  transfer.head.kind = DoubleNcclHead::Kind::kAllGather;
  transfer.head.number = number;
  const std::size_t bytes = transfer.head.bytes;
  for (int rank = 0; rank < member.members; ++rank) {
    std::byte* const part = all + static_cast<std::size_t>(rank) * bytes;
    if (rank == member.rank) {
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
    launch.work.accesses.push_back({all, bytes * static_cast<std::size_t>(member.members), true});
  }
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

ncclResult_t check_operation(const DoubleNcclOperation& operation, int members) {
  const std::string call = operation.call();
  if (operation.datatype < 0 || operation.datatype >= ncclNumTypes) {
    return nccl_failure(ncclInvalidArgument,
                        call + " : invalid type " + std::to_string(operation.datatype));
  }
  if (operation.stream == nullptr) {
    return nccl_failure(ncclInvalidArgument, call + " : the double has no default stream");
  }
  const bool collective = operation.kind == DoubleNcclOperation::Kind::kAllGather;
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
  return ncclSuccess;
}

ncclResult_t make_launch(const std::vector<DoubleNcclOperation>& operations,
                         const DoubleNcclMembership& member, std::uint64_t& collectives,
                         DoubleNcclLaunch& launch) {
  launch.stream = operations.front().stream;
  launch.work.name = name_of(operations);
  for (const DoubleNcclOperation& operation : operations) {
    if (operation.stream != launch.stream) {
      return nccl_objection(
          "a group has operations of one communicator in two streams, "
          "which the double does not do");
    }
    if (operation.kind == DoubleNcclOperation::Kind::kAllGather) {
      add_all_gather(member, launch, operation, collectives++);
    } else {
      add_message(launch, operation);
    }
  }
  if (own_messages_pair_up(launch, member.rank)) return ncclSuccess;
  return nccl_failure(ncclInvalidUsage,
                      "Trying to send to self without a matching recv, or the other way");
}

}  // namespace rrfp
