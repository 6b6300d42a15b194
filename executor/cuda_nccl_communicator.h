// This process's end of a communicator of NCCL. It does not block: a call is
// issued, and its work is in the stream once ready() says so. Until then no
// other call may be made on it, and what is enqueued in the stream would come
// before the work, a mark among it.
//
// Invariants
//  1. An error names the call and gives NCCL's own words.
//  2. No end is left to hang: it is finalized where all went well, and aborted
//     where not, or where that takes longer than kMostFinalizeNs.
//
// Not thread safe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/cuda_marks.h"
#include "executor/cuda_nccl_functions.h"
#include "executor/cuda_peer_wait.h"

namespace rrfp {

/// Between two looks at what is waited for and may take long.
inline constexpr std::int64_t kBetweenNcclLooksNs = 20'000;

/// What the members of a communicator that is yet to be made find each other by.
Result<ncclUniqueId> make_nccl_id(const CudaNcclFunctions& nccl);

class CudaNcclCommunicator {
 public:
  static constexpr std::int64_t kMostFinalizeNs = 2'000'000'000;
  /// As many of NCCL's thread blocks as it likes.
  static constexpr int kAnyBlocks = 0;

  /// Rank `rank` of `ranks` on the current device; waits for the others.
  /// `most_blocks`: that move something at a time, each on an SM.
  static Result<std::unique_ptr<CudaNcclCommunicator>> create(const CudaNcclFunctions& nccl,
                                                              const ncclUniqueId& id, int ranks,
                                                              int rank, int most_blocks,
                                                              CudaPeerWait& wait);
  ~CudaNcclCommunicator();
  CudaNcclCommunicator(const CudaNcclCommunicator&) = delete;
  CudaNcclCommunicator& operator=(const CudaNcclCommunicator&) = delete;

  Result<void> send(const void* from, std::size_t bytes, int peer, cudaStream_t stream);
  Result<void> receive(void* to, std::size_t bytes, int peer, cudaStream_t stream);
  /// `all`: `bytes` of each rank, in the order of ranks.
  Result<void> all_gather(const void* part, void* all, std::size_t bytes, cudaStream_t stream);

  /// What was issued is in its stream. The error may be a peer's that was lost.
  Result<bool> ready();
  /// Looks until then.
  Result<void> wait_until_ready(CudaPeerWait& wait);
  /// Looks until what was issued has been done, too. `marks`: of its stream.
  /// After an error it may be in the stream for good, until an abort.
  Result<void> wait_until_done(CudaMarks& marks, CudaPeerWait& wait);

  /// Work that waits in a stream for a peer ends, and all later calls fail.
  /// Waits for the device, on which no other communicator's work may wait. The
  /// error is NCCL's; the communicator is gone nevertheless.
  Result<void> abort();
  /// The same for all that a device has. One after the other they would wait for
  /// each other's work. Null ones are passed over. The error is the first that
  /// NCCL gave, and all are gone nevertheless.
  static Result<void> abort_together(const std::vector<CudaNcclCommunicator*>& all);

 private:
  explicit CudaNcclCommunicator(const CudaNcclFunctions& nccl) : nccl_(nccl) {}
  /// After it the communicator is aborted, not finalized.
  Error failed(const Error& why) {
    failed_ = true;
    return why;
  }
  /// Those that it could not abort still have their communicator.
  static Result<void> abort_in_group(const CudaNcclFunctions& nccl,
                                     const std::vector<CudaNcclCommunicator*>& alive);
  /// Calls `call(communicator)` unless aborted.
  template <typename Call>
  Result<void> issue(const char* name, Call call);
  bool finalized();
  Error error(const char* call, ncclResult_t code) const;

  const CudaNcclFunctions nccl_;
  ncclComm_t communicator_ = nullptr;  // null: aborted, or never made
  bool failed_ = false;
};

}  // namespace rrfp
