// What NCCL puts into a stream: the operations of one communicator that were
// issued together, as transfers over the rings of its members.
//
//  1. Launches of a communicator run one after the other in the order in which
//     they were issued, whatever their streams.
//  2. A launch ends when all its transfers have; until then its stream waits, for
//     as long as it takes.
//  3. Once the communicator is over, launches end without data.
//
// Thread safety: the link is shared by the host's thread and those of streams; a
// launch belongs to one thread at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/cuda_double_nccl_board.h"
#include "executor/cuda_double_work.h"

namespace rrfp {

/// One member's part in a communicator, for as long as anything needs it.
struct DoubleNcclLink {
  std::unique_ptr<DoubleNcclBoard> board;
  int rank = 0;
  int device = 0;
  std::atomic<bool> stopped{false};  ///< aborted, or an objection was made
  std::atomic<std::uint64_t> launches_done{0};

  /// An objection by another member is one here.
  bool is_over();
};

struct DoubleNcclTransfer {
  bool outgoing = false;
  int peer = 0;
  DoubleNcclHead head;
  std::byte* memory = nullptr;
  std::uint64_t done = 0;  ///< bytes, those of the head with them
};

struct DoubleNcclLaunch {
  cudaStream_t stream = nullptr;
  std::uint64_t number = 0;  ///< in its communicator
  DoubleWork work;
  std::vector<DoubleNcclTransfer> transfers;  ///< as issued
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  std::vector<Copy> copies;  ///< of a member's own part
};

/// On the thread of a stream, until it has ended.
void work_off(DoubleNcclLink& link, DoubleNcclLaunch& launch);

/// Between two looks at what other members have done.
void pause_for_nccl();

}  // namespace rrfp
