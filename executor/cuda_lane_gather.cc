#include "executor/cuda_lane_gather.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace rrfp {

namespace {

class HostGather final : public CudaLaneGather {
 public:
  HostGather(std::shared_ptr<LaneExchange> exchange, CudaPinnedMemory staging)
      : exchange_(std::move(exchange)), staging_(std::move(staging)) {}

  bool waits_in_stream() const override { return false; }
  Result<void> gather(CudaCompute& compute, const CudaMatrix& part, float* all) override;

 private:
  std::shared_ptr<LaneExchange> exchange_;
  CudaPinnedMemory staging_;  // the parts of all lanes
};

// What the copy to the device of the sum before read is written over only once the stream has been
// waited for.
Result<void> HostGather::gather(CudaCompute& compute, const CudaMatrix& part, float* all) {
  const cudaStream_t stream = compute.stream();
  Result<void> copied = check_cuda(
      "cudaMemcpyAsync",
      cudaMemcpyAsync(staging_.data(), part.data, part.bytes(), cudaMemcpyDeviceToHost, stream));
  if (!copied.ok()) return copied;
  Result<void> waited = check_cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream));
  if (!waited.ok()) return waited;
  Payload mine(part.bytes());
  std::memcpy(mine.data(), staging_.data(), mine.size());
  const Result<std::vector<Payload>> parts = exchange_->exchange(std::move(mine));
  if (!parts.ok()) return parts.error();
  std::byte* to = staging_.data();
  for (const Payload& of : *parts) {
    if (of.size() != part.bytes()) {
      return Error{"a lane brought a part of " + std::to_string(of.size()) + " bytes to a sum of " +
                   std::to_string(part.bytes())};
    }
    std::memcpy(to, of.data(), of.size());
    to += of.size();
  }
  return check_cuda(
      "cudaMemcpyAsync",
      cudaMemcpyAsync(all, staging_.data(), static_cast<std::size_t>(to - staging_.data()),
                      cudaMemcpyHostToDevice, stream));
}

}  // namespace

Result<std::unique_ptr<CudaLaneGather>> gather_through_host(std::shared_ptr<LaneExchange> exchange,
                                                            std::size_t most) {
  const auto lanes = static_cast<std::size_t>(exchange->lanes());
  Result<CudaPinnedMemory> staging = CudaPinnedMemory::create(lanes * most * sizeof(float));
  if (!staging.ok()) return staging.error();
  return std::unique_ptr<CudaLaneGather>(
      std::make_unique<HostGather>(std::move(exchange), std::move(*staging)));
}

}  // namespace rrfp
