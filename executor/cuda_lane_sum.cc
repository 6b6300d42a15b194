#include "executor/cuda_lane_sum.h"

#include <cstring>
#include <string>
#include <vector>

#include "scheduler_core/check.h"

namespace rrfp {

Result<CudaLaneSum> CudaLaneSum::create(std::shared_ptr<LaneExchange> exchange, int lanes,
                                        std::size_t most) {
  CudaLaneSum made;
  if (lanes == 1) return made;
  made.exchange_ = std::move(exchange);
  made.lanes_ = static_cast<std::size_t>(lanes);
  made.most_ = most;
  Result<CudaPinnedMemory> staging = CudaPinnedMemory::create(made.lanes_ * most * sizeof(float));
  if (!staging.ok()) return staging.error();
  made.staging_ = std::move(*staging);
  Result<CudaMemory> other = CudaMemory::create(most * sizeof(float), "the sum over lanes");
  if (!other.ok()) return other.error();
  made.other_ = std::move(*other);
  return made;
}

void CudaLaneSum::sum(CudaCompute& compute, const CudaMatrix& part) {
  if (lanes_ == 1 || compute.failure()) return;
  RRFP_CHECK(part.stride == part.columns && part.size() <= most_);
  if (Result<void> exchanged = exchange(compute, part); !exchanged.ok()) {
    return compute.fail(exchanged.error());
  }
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    float* const to = lane == 0 ? part.data : reinterpret_cast<float*>(other_.data());
    compute.run("cudaMemcpyAsync", [&](cudaStream_t stream) {
      return cudaMemcpyAsync(to, staging_.data() + lane * part.bytes(), part.bytes(),
                             cudaMemcpyHostToDevice, stream);
    });
    if (lane == 0) continue;
    compute.run("launch of a sum over lanes", [&](cudaStream_t stream) {
      return launch_add(part.size(), to, part.data, stream);
    });
  }
}

// What the copies to the device of the sum before read is written over only once the stream has
// been waited for.
Result<void> CudaLaneSum::exchange(CudaCompute& compute, const CudaMatrix& part) {
  const cudaStream_t stream = compute.stream();
  Result<void> copied = check_cuda(
      "cudaMemcpyAsync",
      cudaMemcpyAsync(staging_.data(), part.data, part.bytes(), cudaMemcpyDeviceToHost, stream));
  if (!copied.ok()) return copied;
  Result<void> waited = check_cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream));
  if (!waited.ok()) return waited;
  Payload mine(part.bytes());
  std::memcpy(mine.data(), staging_.data(), mine.size());
  const Result<std::vector<Payload>> all = exchange_->exchange(std::move(mine));
  if (!all.ok()) return all.error();
  for (std::size_t lane = 0; lane < lanes_; ++lane) {
    const Payload& of = (*all)[lane];
    if (of.size() != part.bytes()) {
      return Error{"a lane brought a part of " + std::to_string(of.size()) + " bytes to a sum of " +
                   std::to_string(part.bytes())};
    }
    std::memcpy(staging_.data() + lane * part.bytes(), of.data(), of.size());
  }
  return {};
}

}  // namespace rrfp
