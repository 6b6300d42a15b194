// How far a stream has got. The host leaves marks in it, between the work, and
// reads a number that the stream itself writes to pinned host memory when it
// passes one: a microsecond, where a callback takes a hundred. A driver without
// that gets an event per mark instead.
//
// Invariants
//  1. Marks are numbered 1, 2, ... in the order of leave().
//  2. reached() never goes back, and mark n is reached only after all work
//     that was enqueued before it.
//
// Thread safety: one thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "executor/cuda_pinned_word.h"
#include "scheduler_core/result.h"

namespace rrfp {

class CudaMarks {
 public:
  /// `stream` outlives it.
  static Result<std::unique_ptr<CudaMarks>> create(cudaStream_t stream);
  ~CudaMarks();
  CudaMarks(const CudaMarks&) = delete;
  CudaMarks& operator=(const CudaMarks&) = delete;

  /// Enqueues the next mark, and gives its number.
  Result<std::int64_t> leave();
  /// The last mark that the stream has passed; 0: none. The error is that of
  /// work in the stream.
  Result<std::int64_t> reached();
  bool uses_events() const { return !word_.exists(); }

 private:
  explicit CudaMarks(cudaStream_t stream) : stream_(stream) {}
  Result<void> prepare();
  Result<void> leave_event();
  Result<void> pass_events();

  cudaStream_t stream_;
  std::int64_t left_ = 0;
  std::int64_t reached_ = 0;
  CudaPinnedWord word_;              // the low bits of the last mark passed
  std::uint32_t looks_ = 0;          // in vain
  std::deque<cudaEvent_t> pending_;  // of the marks after reached_
  std::vector<cudaEvent_t> spare_;
};

}  // namespace rrfp
