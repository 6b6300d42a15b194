// A virtual device: one worker's share of a GPU, with two streams of its own.
// Computing has one; copies have the other, of a higher priority, so that a
// message need not wait behind a task.
//
// Where the driver has green contexts, partitions are disjoint sets of SMs;
// where it has not, they are plain streams that share all of them. Memory
// bandwidth and cache are shared in any case: partitions slow each other.
//
// Invariant: streams are destroyed before the contexts they belong to.
//
// Thread safety: a partition belongs to one worker but for blocks().
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/cuda_blocks.h"
#include "executor/cuda_driver.h"
#include "executor/cuda_marks.h"
#include "scheduler_core/result.h"

namespace rrfp {

class CudaPartition {
 public:
  ~CudaPartition();
  CudaPartition(const CudaPartition&) = delete;
  CudaPartition& operator=(const CudaPartition&) = delete;

  int device() const { return device_; }
  int sms() const { return sms_; }  ///< that work is cut for
  cudaStream_t compute() const { return compute_; }
  cudaStream_t copies() const { return copies_; }
  CudaMarks& compute_marks() { return *compute_marks_; }
  CudaMarks& copy_marks() { return *copy_marks_; }
  CudaBlocks& blocks() { return blocks_; }
  /// What kernels in compute() report to, see FaultReport.
  const CudaPinnedWord& fault() const { return fault_; }

 private:
  friend class CudaDevicePartitions;
  CudaPartition() = default;
  Result<void> complete();

  int device_ = 0;
  int sms_ = 0;
  cudaStream_t compute_ = nullptr;
  cudaStream_t copies_ = nullptr;
  std::unique_ptr<CudaMarks> compute_marks_;
  std::unique_ptr<CudaMarks> copy_marks_;
  CudaPinnedWord fault_;
  CudaBlocks blocks_;
#if RRFP_CUDA_GREEN_CONTEXTS
  CUgreenCtx context_ = nullptr;
#endif
};

/// Of the current device.
Result<int> highest_stream_priority();

/// A device cut into equal partitions.
class CudaDevicePartitions {
 public:
  static Result<CudaDevicePartitions> create(int device, int count);

  int count() const { return static_cast<int>(partitions_.size()); }
  CudaPartition& partition(int index) { return *partitions_[static_cast<std::size_t>(index)]; }
  /// "4 partitions of 32 SMs (green contexts)", and how completion is seen.
  std::string describe() const;

 private:
  CudaDevicePartitions() = default;
  Result<bool> cut_into_contexts(int device, int count);
  Result<void> cut_into_streams(int device, int count);

  bool contexts_ = false;
  std::vector<std::unique_ptr<CudaPartition>> partitions_;
};

}  // namespace rrfp
