// How long a stream takes for what is enqueued in it, by the device's own
// clock: two events around the work.
//
// Not thread safe.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/cuda_error.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// REQUIRES: not empty.
template <typename Number>
Number median_of(std::vector<Number> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

class CudaStopwatch {
 public:
  CudaStopwatch() = default;
  ~CudaStopwatch() {
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
  }
  CudaStopwatch(const CudaStopwatch&) = delete;
  CudaStopwatch& operator=(const CudaStopwatch&) = delete;

  /// Comes first.
  Result<void> prepare() {
    Result<void> first = check_cuda("cudaEventCreate", cudaEventCreate(&begin_));
    if (!first.ok()) return first;
    return check_cuda("cudaEventCreate", cudaEventCreate(&end_));
  }

  /// Enqueues what `launch(stream)` enqueues, between the events.
  template <typename Launch>
  Result<void> start(cudaStream_t stream, Launch&& launch) {
    Result<void> begun = check_cuda("cudaEventRecord", cudaEventRecord(begin_, stream));
    if (!begun.ok()) return begun;
    Result<void> launched = check_cuda("launch of what is measured", launch(stream));
    if (!launched.ok()) return launched;
    return check_cuda("cudaEventRecord", cudaEventRecord(end_, stream));
  }

  /// Waits for the end, and says how long that took.
  Result<double> ns() {
    Result<void> ended = check_cuda("cudaEventSynchronize", cudaEventSynchronize(end_));
    if (!ended.ok()) return ended.error();
    float milliseconds = 0;
    Result<void> told =
        check_cuda("cudaEventElapsedTime", cudaEventElapsedTime(&milliseconds, begin_, end_));
    if (!told.ok()) return told.error();
    return static_cast<double>(milliseconds) * 1e6;
  }

  /// Of some rounds, one after another, sorted. The first also loads a kernel.
  template <typename Launch>
  Result<std::vector<double>> rounds_ns(int rounds, cudaStream_t stream, Launch&& launch) {
    std::vector<double> all;
    for (int round = 0; round < rounds; ++round) {
      if (Result<void> started = start(stream, launch); !started.ok()) return started.error();
      const Result<double> one = ns();
      if (!one.ok()) return one.error();
      all.push_back(*one);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace rrfp
