// How many matrix products take a wanted time on a partition: measured once,
// by the device's own clock.
//
// Thread safety: immutable once made.
#pragma once

#include <cstdint>

#include "executor/cuda_partition.h"
#include "scheduler_core/result.h"

namespace rrfp {

class CudaWorkLength {
 public:
  /// Takes some milliseconds. Measured while the other partitions measure too,
  /// it holds for a device that is busy.
  static Result<CudaWorkLength> measure(CudaPartition& partition);

  int blocks() const { return blocks_; }
  /// At least one.
  int products_for(std::int64_t length_ns) const;

 private:
  CudaWorkLength() = default;

  int blocks_ = 1;
  std::int64_t product_ps_ = 1;   // of one more product
  std::int64_t overhead_ns_ = 0;  // of a kernel without any
};

}  // namespace rrfp
