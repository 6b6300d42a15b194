#include "executor/cuda_work_length.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/cuda_launchers.h"
#include "scheduler_core/check.h"

namespace rrfp {

namespace {

constexpr int kMostProducts = 1 << 30;

}  // namespace

int chain_blocks(int sms, int free_sms) {
  constexpr int kPerSm = 2;  // so that one computes while the other waits for shared memory
  return free_sms == 0 ? kPerSm * sms : std::max({sms - free_sms, sms / 2, 1});
}

// A busy host may hold up the short chains for longer than the long ones take. Still most of what
// many take are products, which bounds one from both sides; it must not come out as next to
// nothing, for tasks would then last for many minutes, and no stream ends early.
double CudaWorkMeasurement::product_ns(double few_ns, double many_ns) {
  const double most_ns = std::max(many_ns / kManyInChain, 1e-3);
  return std::clamp((many_ns - few_ns) / (kManyInChain - kFewInChain), most_ns / 2, most_ns);
}

CudaWorkMeasurement::CudaWorkMeasurement(CudaPartition& partition, std::size_t tensor_bytes,
                                         int free_sms)
    : partition_(partition),
      tensor_bytes_(tensor_bytes),
      blocks_(chain_blocks(partition.sms(), free_sms)) {
  least_ns_.fill(std::numeric_limits<double>::infinity());
}

CudaWorkMeasurement::~CudaWorkMeasurement() {
  if (block_ == nullptr) return;
  cudaStreamSynchronize(partition_.compute());  // after an error a round may be under way
  partition_.blocks().give_back(block_);
}

Result<int> CudaWorkMeasurement::measure_round() {
  if (round_ == 0) {
    if (Result<void> ready = watch_.prepare(); !ready.ok()) return ready.error();
  }
  RRFP_CHECK(round_ < rounds());
  const auto what = static_cast<What>(round_ / kRounds);
  const Result<double> took_ns = once_ns(what);
  if (!took_ns.ok()) return took_ns.error();
  least_ns_[what] = std::min(least_ns_[what], *took_ns);
  ++round_;
  if (partition_.fault().load() != 0) return Error{"the device computes wrong results"};
  return rounds() - round_;
}

Result<double> CudaWorkMeasurement::once_ns(What what) {
  if (what == kFilling || what == kChecking) return tensor_once_ns(what);
  Result<void> started = watch_.start(partition_.compute(), [&](cudaStream_t stream) {
    return launch_matrix_chain(blocks_, what == kFewProducts ? kFewInChain : kManyInChain,
                               {partition_.fault().get(), 1}, stream);
  });
  return started.ok() ? watch_.ns() : started.error();
}

// What is checked has been filled, for the rounds of filling come first.
Result<double> CudaWorkMeasurement::tensor_once_ns(What what) {
  if (block_ == nullptr) {
    const Result<void*> block = partition_.blocks().take(tensor_bytes_);
    if (!block.ok()) return block.error();
    block_ = *block;
  }
  Result<void> started = watch_.start(partition_.compute(), [&](cudaStream_t stream) {
    if (what == kFilling) return launch_fill_pattern(block_, measured_bytes(), 0, stream);
    return launch_check_pattern(block_, measured_bytes(), 0, {partition_.fault().get(), 1}, stream);
  });
  return started.ok() ? watch_.ns() : started.error();
}

CudaWorkLength CudaWorkMeasurement::length() const {
  RRFP_CHECK(round_ == rounds());
  const double few_ns = least_ns_[kFewProducts];
  CudaWorkLength made;
  made.blocks_ = blocks_;
  made.product_ns_ = product_ns(few_ns, least_ns_[kManyProducts]);
  made.overhead_ns_ = std::max(0.0, few_ns - made.product_ns_ * kFewInChain);
  if (tensor_bytes_ == 0) return made;
  made.fill_ns_per_byte_ = least_ns_[kFilling] / static_cast<double>(measured_bytes());
  made.check_ns_per_byte_ = least_ns_[kChecking] / static_cast<double>(measured_bytes());
  return made;
}

int CudaWorkLength::products_for(std::int64_t length_ns, std::size_t checked_bytes,
                                 std::size_t filled_bytes) const {
  const double left_ns = static_cast<double>(length_ns) - overhead_ns_ -
                         check_ns_per_byte_ * static_cast<double>(checked_bytes) -
                         fill_ns_per_byte_ * static_cast<double>(filled_bytes);
  return static_cast<int>(std::clamp<double>(std::round(left_ns / product_ns_), 1, kMostProducts));
}

}  // namespace rrfp
