#include "executor/cuda_work_length.h"

#include <algorithm>
#include <cmath>

#include "executor/cuda_launchers.h"
#include "executor/cuda_stopwatch.h"

namespace rrfp {

namespace {

constexpr int kFewProducts = 32;
constexpr int kManyProducts = 1024;
constexpr int kRounds = 5;
constexpr int kMostProducts = 1 << 30;

// Of some rounds, what none takes less than.
template <typename Launch>
Result<double> least_ns(CudaStopwatch& watch, cudaStream_t stream, Launch&& launch) {
  const Result<std::vector<double>> all = watch.rounds_ns(kRounds, stream, launch);
  if (!all.ok()) return all.error();
  return all->front();
}

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

int chain_blocks(int sms, int free_sms) {
  constexpr int kPerSm = 2;  // so that one computes while the other waits for shared memory
  return free_sms == 0 ? kPerSm * sms : std::max({sms - free_sms, sms / 2, 1});
}

Result<CudaWorkLength> CudaWorkLength::measure(CudaPartition& partition, std::size_t tensor_bytes,
                                               int free_sms) {
  CudaWorkLength made;
  made.blocks_ = chain_blocks(partition.sms(), free_sms);
  const FaultReport report{partition.fault().get(), 1};
  CudaStopwatch watch;
  if (Result<void> ready = watch.prepare(); !ready.ok()) return ready.error();
  Result<double> times[2] = {0.0, 0.0};
  for (int of = 0; of < 2; ++of) {
    times[of] = least_ns(watch, partition.compute(), [&](cudaStream_t stream) {
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
  CudaStopwatch watch;
  if (Result<void> ready = watch.prepare(); !ready.ok()) return ready;
  const Result<double> filled = least_ns(watch, partition.compute(), [&](cudaStream_t stream) {
    return launch_fill_pattern(*block, bytes, 0, stream);
  });
  if (!filled.ok()) return filled.error();
  const Result<double> checked = least_ns(watch, partition.compute(), [&](cudaStream_t stream) {
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
