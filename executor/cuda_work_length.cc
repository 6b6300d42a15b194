#include "executor/cuda_work_length.h"

#include <algorithm>
#include <cmath>

#include "executor/cuda_error.h"
#include "executor/cuda_launchers.h"

namespace rrfp {

namespace {

constexpr int kBlocksPerSm = 2;  // so that one computes while the other waits for shared memory
constexpr int kFewProducts = 32;
constexpr int kManyProducts = 1024;
constexpr int kRounds = 5;
constexpr int kMostProducts = 1 << 30;

// Two events around a piece of work.
class Stopwatch {
 public:
  ~Stopwatch() {
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
  }
  Stopwatch() = default;
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  Result<void> prepare() {
    Result<void> first = check_cuda("cudaEventCreate", cudaEventCreate(&begin_));
    if (!first.ok()) return first;
    return check_cuda("cudaEventCreate", cudaEventCreate(&end_));
  }

  /// In nanoseconds.
  Result<std::int64_t> time_chain(CudaPartition& partition, int blocks, int products) {
    const cudaStream_t stream = partition.compute();
    cudaError_t code = cudaEventRecord(begin_, stream);
    if (code != cudaSuccess) return cuda_error("cudaEventRecord", code);
    code = launch_matrix_chain(blocks, products, {partition.fault().get(), 1}, stream);
    if (code != cudaSuccess) return cuda_error("launch of the matrix chain", code);
    code = cudaEventRecord(end_, stream);
    if (code != cudaSuccess) return cuda_error("cudaEventRecord", code);
    code = cudaEventSynchronize(end_);
    if (code != cudaSuccess) return cuda_error("cudaEventSynchronize", code);
    float milliseconds = 0;
    code = cudaEventElapsedTime(&milliseconds, begin_, end_);
    if (code != cudaSuccess) return cuda_error("cudaEventElapsedTime", code);
    return std::llround(static_cast<double>(milliseconds) * 1e6);
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace

// The least of some rounds, the first of which also loads the kernel.
Result<CudaWorkLength> CudaWorkLength::measure(CudaPartition& partition) {
  CudaWorkLength made;
  made.blocks_ = kBlocksPerSm * partition.sms();
  Stopwatch watch;
  if (Result<void> ready = watch.prepare(); !ready.ok()) return ready.error();
  std::int64_t few_ns = 0;
  std::int64_t many_ns = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Result<std::int64_t> few = watch.time_chain(partition, made.blocks_, kFewProducts);
    if (!few.ok()) return few.error();
    const Result<std::int64_t> many = watch.time_chain(partition, made.blocks_, kManyProducts);
    if (!many.ok()) return many.error();
    few_ns = round == 0 ? *few : std::min(few_ns, *few);
    many_ns = round == 0 ? *many : std::min(many_ns, *many);
  }
  if (partition.fault().load() != 0) return Error{"the device computes wrong matrix products"};
  made.product_ps_ =
      std::max<std::int64_t>(1, (many_ns - few_ns) * 1000 / (kManyProducts - kFewProducts));
  made.overhead_ns_ = std::max<std::int64_t>(0, few_ns - made.product_ps_ * kFewProducts / 1000);
  return made;
}

int CudaWorkLength::products_for(std::int64_t length_ns) const {
  // At most 2^30 products, of whatever length: no overflow on the way.
  const std::int64_t left_ns = std::max<std::int64_t>(0, length_ns - overhead_ns_);
  const double products = static_cast<double>(left_ns) * 1000 / static_cast<double>(product_ps_);
  return static_cast<int>(std::clamp<double>(std::round(products), 1, kMostProducts));
}

}  // namespace rrfp
