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

  /// How long the stream takes for what `launch` enqueues: the least of some
  /// rounds, the first of which also loads the kernel.
  template <typename Launch>
  Result<double> least_ns(cudaStream_t stream, Launch&& launch) {
    double least_ns = 0;
    for (int round = 0; round < kRounds; ++round) {
      cudaError_t code = cudaEventRecord(begin_, stream);
      if (code != cudaSuccess) return cuda_error("cudaEventRecord", code);
      code = launch(stream);
      if (code != cudaSuccess) return cuda_error("launch of a kernel that is measured", code);
      code = cudaEventRecord(end_, stream);
      if (code != cudaSuccess) return cuda_error("cudaEventRecord", code);
      code = cudaEventSynchronize(end_);
      if (code != cudaSuccess) return cuda_error("cudaEventSynchronize", code);
      float milliseconds = 0;
      code = cudaEventElapsedTime(&milliseconds, begin_, end_);
      if (code != cudaSuccess) return cuda_error("cudaEventElapsedTime", code);
      const double ns = static_cast<double>(milliseconds) * 1e6;
      least_ns = round == 0 ? ns : std::min(least_ns, ns);
    }
    return least_ns;
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

// A block that goes back at the end.
class Borrowed {
 public:
  Borrowed(CudaBlocks& blocks, void* block) : blocks_(blocks), block_(block) {}
  ~Borrowed() { blocks_.give_back(block_); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

 private:
  CudaBlocks& blocks_;
  void* block_;
};

}  // namespace

Result<CudaWorkLength> CudaWorkLength::measure(CudaPartition& partition, std::size_t tensor_bytes) {
  CudaWorkLength made;
  made.blocks_ = kBlocksPerSm * partition.sms();
  const FaultReport report{partition.fault().get(), 1};
  Stopwatch watch;
  if (Result<void> ready = watch.prepare(); !ready.ok()) return ready.error();
  Result<double> times[2] = {0.0, 0.0};
  for (int of = 0; of < 2; ++of) {
    times[of] = watch.least_ns(partition.compute(), [&](cudaStream_t stream) {
      return launch_matrix_chain(made.blocks_, of == 0 ? kFewProducts : kManyProducts, report,
                                 stream);
    });
    if (!times[of].ok()) return times[of].error();
  }
  made.product_ns_ = std::max(1e-3, (*times[1] - *times[0]) / (kManyProducts - kFewProducts));
  made.overhead_ns_ = std::max(0.0, *times[0] - made.product_ns_ * kFewProducts);
  if (tensor_bytes > 0) {
    if (Result<void> measured = made.measure_tensors(partition, tensor_bytes); !measured.ok()) {
      return measured.error();
    }
  }
  if (partition.fault().load() != 0) return Error{"the device computes wrong results"};
  return made;
}

Result<void> CudaWorkLength::measure_tensors(CudaPartition& partition, std::size_t bytes) {
  const Result<void*> block = partition.blocks().take(bytes);
  if (!block.ok()) return block.error();
  const Borrowed borrowed(partition.blocks(), *block);
  Stopwatch watch;
  if (Result<void> ready = watch.prepare(); !ready.ok()) return ready;
  const Result<double> filled = watch.least_ns(partition.compute(), [&](cudaStream_t stream) {
    return launch_fill_pattern(*block, bytes, 0, stream);
  });
  if (!filled.ok()) return filled.error();
  const Result<double> checked = watch.least_ns(partition.compute(), [&](cudaStream_t stream) {
    return launch_check_pattern(*block, bytes, 0, {partition.fault().get(), 1}, stream);
  });
  if (!checked.ok()) return checked.error();
  fill_ns_per_byte_ = *filled / static_cast<double>(bytes);
  check_ns_per_byte_ = *checked / static_cast<double>(bytes);
  return {};
}

int CudaWorkLength::products_for(std::int64_t length_ns, std::size_t checked_bytes,
                                 std::size_t filled_bytes) const {
  const double left_ns = static_cast<double>(length_ns) - overhead_ns_ -
                         check_ns_per_byte_ * static_cast<double>(checked_bytes) -
                         fill_ns_per_byte_ * static_cast<double>(filled_bytes);
  return static_cast<int>(std::clamp<double>(std::round(left_ns / product_ns_), 1, kMostProducts));
}

}  // namespace rrfp
