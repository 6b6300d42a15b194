#include "executor/cuda_double_nccl_launch.h"

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <thread>
#include <utility>

#include "executor/cuda_double_setting.h"

namespace rrfp {

namespace {

// Of one peer in one direction: the first is under way.
using Queue = std::deque<DoubleNcclTransfer>;

std::string name_of(const DoubleNcclTransfer& transfer, const DoubleNcclHead& head, int rank) {
  if (head.kind == DoubleNcclHead::Kind::kAllGather) {
    return "all-gather " + std::to_string(head.number) + " of rank " + std::to_string(rank) +
           " with " + head.describe_size() + " a member";
  }
  return std::string(transfer.outgoing ? "the send" : "the receive") + " of " +
         head.describe_size() + " by rank " + std::to_string(rank);
}

class Progress {
 public:
  Progress(DoubleNcclLink& link, DoubleNcclLaunch& launch)
      : link_(link), late_(double_is_set("RRFP_DOUBLE_WITH", "late-sends")) {
    for (DoubleNcclTransfer& transfer : launch.transfers) {
      queues_[{transfer.peer, transfer.outgoing}].push_back(transfer);
    }
  }

  bool ended() const { return queues_.empty(); }

  // False where nothing could be done.
  bool step() {
    bool any = false;
    for (auto entry = queues_.begin(); entry != queues_.end();) {
      Queue& queue = entry->second;
      while (!queue.empty() && advance(queue.front(), any)) queue.pop_front();
      entry = queue.empty() ? queues_.erase(entry) : std::next(entry);
    }
    return any;
  }

 private:
  // True once the transfer has ended.
  bool advance(DoubleNcclTransfer& transfer, bool& any) {
    const std::uint64_t before = transfer.done;
    const bool ended = transfer.outgoing ? send(transfer) : receive(transfer);
    any = any || ended || transfer.done != before;
    return ended;
  }

  bool send(DoubleNcclTransfer& transfer) {
    DoubleNcclRing& ring = link_.board->ring(link_.rank, transfer.peer);
    if (transfer.done == 0) {
      if (ring.room() < sizeof(DoubleNcclHead)) return false;
      transfer.done = ring.put(&transfer.head, sizeof(DoubleNcclHead));
    }
    const std::uint64_t sent = transfer.done - sizeof(DoubleNcclHead);
    if (sent < transfer.head.bytes) {
      transfer.done += ring.put(transfer.memory + sent, transfer.head.bytes - sent);
    }
    return transfer.done == sizeof(DoubleNcclHead) + transfer.head.bytes &&
           (!late_ || ring.filled() == 0);
  }

  bool receive(DoubleNcclTransfer& transfer) {
    DoubleNcclRing& ring = link_.board->ring(transfer.peer, link_.rank);
    if (transfer.done == 0) {
      if (ring.filled() < sizeof(DoubleNcclHead)) return false;
      DoubleNcclHead theirs;
      transfer.done = ring.take(&theirs, sizeof(DoubleNcclHead));
      if (!(theirs == transfer.head)) return object(transfer, theirs);
    }
    const std::uint64_t received = transfer.done - sizeof(DoubleNcclHead);
    if (received < transfer.head.bytes) {
      transfer.done += ring.take(transfer.memory + received, transfer.head.bytes - received);
    }
    return transfer.done == sizeof(DoubleNcclHead) + transfer.head.bytes;
  }

  bool object(const DoubleNcclTransfer& transfer, const DoubleNcclHead& theirs) {
    DoubleNcclTransfer other = transfer;
    other.outgoing = true;
    link_.board->fail(name_of(transfer, transfer.head, link_.rank) + " meets " +
                      name_of(other, theirs, transfer.peer));
    return false;
  }

  DoubleNcclLink& link_;
  const bool late_;
  std::map<std::pair<int, bool>, Queue> queues_;
};

}  // namespace

bool DoubleNcclLink::is_over() {
  if (stopped.load(std::memory_order_acquire)) return true;
  const std::string failure = board->failure();
  if (failure.empty()) return false;
  DoubleMachine::get().check([&](DoubleChecks& checks) { checks.object(failure); });
  stopped.store(true, std::memory_order_release);
  return true;
}

void work_off(DoubleNcclLink& link, DoubleNcclLaunch& launch) {
  while (link.launches_done.load(std::memory_order_acquire) != launch.number) {
    if (link.is_over()) return;
    pause_for_nccl();
  }
  for (const DoubleNcclLaunch::Copy& copy : launch.copies) {
    if (copy.to != copy.from) std::memmove(copy.to, copy.from, copy.bytes);
  }
  Progress progress(link, launch);
  while (!progress.ended()) {
    if (link.is_over()) return;
    if (!progress.step()) pause_for_nccl();
  }
  link.launches_done.store(launch.number + 1, std::memory_order_release);
}

void pause_for_nccl() { std::this_thread::sleep_for(std::chrono::microseconds(30)); }

}  // namespace rrfp
