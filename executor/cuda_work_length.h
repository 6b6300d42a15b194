// How many matrix products make up a wanted length of a task on a partition,
// beside what the task does with its tensors: measured once, by the device's
// own clock.
//
// Thread safety: none, as of the partition; a length is a plain value.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "executor/cuda_partition.h"
#include "executor/cuda_stopwatch.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// How many blocks a chain has that leaves `free_sms` to others. They stay on
/// their SMs to the end of the task, and a transfer that comes meanwhile needs an
/// SM without one: a block of NCCL takes most of an SM's registers. Blocks go to
/// idle SMs first, so with no more than one each the others stay free.
int chain_blocks(int sms, int free_sms);

class CudaWorkLength {
 public:
  int blocks() const { return blocks_; }
  /// For a task of this length that checks and fills tensors of so many bytes.
  /// At least one.
  int products_for(std::int64_t length_ns, std::size_t checked_bytes,
                   std::size_t filled_bytes) const;

 private:
  friend class CudaWorkMeasurement;
  CudaWorkLength() = default;

  int blocks_ = 1;
  double product_ns_ = 1;   // of one more product
  double overhead_ns_ = 0;  // of a kernel without any
  double check_ns_per_byte_ = 0;
  double fill_ns_per_byte_ = 0;
};

/// Measures in rounds, each of which takes some milliseconds, or longer where
/// many partitions share a device. Measured while the others measure too, it
/// holds for a device that is busy.
class CudaWorkMeasurement {
 public:
  static constexpr int kFewInChain = 32;
  static constexpr int kManyInChain = 1024;
  /// Of one more product, where chains of so few and so many took that long.
  static double product_ns(double few_ns, double many_ns);

  /// Kernels of the work leave `free_sms` of the partition to others, but take
  /// half of it at least. `tensor_bytes`: of a large message; 0: there is none.
  CudaWorkMeasurement(CudaPartition& partition, std::size_t tensor_bytes, int free_sms);
  ~CudaWorkMeasurement();
  CudaWorkMeasurement(const CudaWorkMeasurement&) = delete;
  CudaWorkMeasurement& operator=(const CudaWorkMeasurement&) = delete;

  /// The next round; how many are left then.
  Result<int> measure_round();
  /// REQUIRES: none is left.
  CudaWorkLength length() const;

 private:
  enum What : std::size_t { kFewProducts, kManyProducts, kFilling, kChecking, kWhats };
  static constexpr int kRounds = 5;  // of each, of which the least counts

  /// More of a tensor takes as long per byte.
  std::size_t measured_bytes() const { return std::min(tensor_bytes_, std::size_t{64} << 20); }
  int rounds() const { return kRounds * static_cast<int>(tensor_bytes_ > 0 ? kWhats : kFilling); }
  Result<double> once_ns(What what);
  Result<double> tensor_once_ns(What what);

  CudaPartition& partition_;
  const std::size_t tensor_bytes_;
  const int blocks_;
  CudaStopwatch watch_;
  void* block_ = nullptr;  // of tensor_bytes_, from the first round that needs it
  int round_ = 0;
  std::array<double, kWhats> least_ns_;
};

}  // namespace rrfp
