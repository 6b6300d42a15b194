#include "executor/cuda_samples.h"

#include <cstring>

namespace rrfp {

Result<void> CudaSamples::reserve(std::size_t bytes) {
  if (bytes <= memory_.bytes()) return {};
  Result<CudaMemory> memory = CudaMemory::create(bytes, "samples");
  if (!memory.ok()) return memory.error();
  Result<CudaPinnedMemory> staging = CudaPinnedMemory::create(bytes);
  if (!staging.ok()) return staging.error();
  memory_ = std::move(*memory);
  staging_ = std::move(*staging);
  return {};
}

Result<void> CudaSamples::upload(std::vector<Sample> samples, CudaCompute& compute) {
  samples_ = std::move(samples);
  begin_.clear();
  std::size_t bytes = 0;
  for (const Sample& sample : samples_) {
    begin_.push_back(bytes);
    for (const std::vector<std::uint8_t>& tokens : sample.tokens) bytes += tokens.size();
    bytes += sample.targets.size();
  }
  if (Result<void> reserved = reserve(bytes); !reserved.ok()) return reserved;
  std::byte* to = staging_.data();
  const auto append = [&to](const std::vector<std::uint8_t>& from) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    to += from.size();
  };
  for (const Sample& sample : samples_) {
    for (const std::vector<std::uint8_t>& tokens : sample.tokens) append(tokens);
    append(sample.targets);
  }
  compute.run("cudaMemcpyAsync", [&](cudaStream_t stream) {
    return cudaMemcpyAsync(memory_.data(), staging_.data(), bytes, cudaMemcpyHostToDevice, stream);
  });
  return compute.wait();
}

CudaSample CudaSamples::sample(int microbatch, int root) const {
  const Sample& of = samples_[static_cast<std::size_t>(microbatch)];
  const auto* at = reinterpret_cast<const std::uint8_t*>(memory_.data()) +
                   begin_[static_cast<std::size_t>(microbatch)];
  CudaSample given;
  for (std::size_t i = 0; i < of.tokens.size(); ++i) {
    if (static_cast<int>(i) == root) given.tokens = at;
    at += of.tokens[i].size();
  }
  given.targets = at;
  return given;
}

}  // namespace rrfp
