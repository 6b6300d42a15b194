// How many matrix products make up a wanted length of a task on a partition,
// beside what the task does with its tensors: measured once, by the device's
// own clock.
//
// Thread safety: immutable once made.
#pragma once

#include <cstdint>

#include "executor/cuda_partition.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// How many blocks a chain has that leaves `free_sms` to others. They stay on
/// their SMs to the end of the task, and a transfer that comes meanwhile needs an
/// SM without one: a block of NCCL takes most of an SM's registers. Blocks go to
/// idle SMs first, so with no more than one each the others stay free.
int chain_blocks(int sms, int free_sms);

class CudaWorkLength {
 public:
  /// Kernels of the work leave `free_sms` of the partition to others, but take
  /// half of it at least. Takes some milliseconds. Measured while the other partitions measure too,
  /// it holds for a device that is busy. `tensor_bytes`: of a large message.
  static Result<CudaWorkLength> measure(CudaPartition& partition, std::size_t tensor_bytes,
                                        int free_sms);

  int blocks() const { return blocks_; }
  /// For a task of this length that checks and fills tensors of so many bytes.
  /// At least one.
  int products_for(std::int64_t length_ns, std::size_t checked_bytes,
                   std::size_t filled_bytes) const;

 private:
  CudaWorkLength() = default;
  Result<void> measure_tensors(CudaPartition& partition, std::size_t bytes);

  int blocks_ = 1;
  double product_ns_ = 1;   // of one more product
  double overhead_ns_ = 0;  // of a kernel without any
  double check_ns_per_byte_ = 0;
  double fill_ns_per_byte_ = 0;
};

}  // namespace rrfp
