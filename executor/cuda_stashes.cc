#include "executor/cuda_stashes.h"

namespace rrfp {

Result<void> CudaStashes::begin(int stages, int microbatches, std::int64_t arena_bytes) {
  for (Kept& of : kept_) {
    release(of.until_input);
    release(of.until_weight);
  }
  microbatches_ = microbatches;
  kept_.assign(static_cast<std::size_t>(stages * microbatches), {});
  if (arena_bytes > arena_.reserved_bytes()) {
    Result<CudaArena> arena = CudaArena::create(static_cast<std::size_t>(arena_bytes));
    if (!arena.ok()) return arena.error();
    arena_ = std::move(*arena);
  }
  arena_.forget_high_water();
  return {};
}

Result<void> CudaStashes::take(std::size_t bytes, std::byte*& block) {
  if (bytes == 0) return {};
  const Result<std::byte*> taken = arena_.take(bytes);
  if (!taken.ok()) return taken.error();
  block = *taken;
  return {};
}

void CudaStashes::release(std::byte*& block) {
  if (block != nullptr) arena_.give_back(block);
  block = nullptr;
}

std::int64_t CudaStashes::bytes_of(const ModelSpec& spec, const StageCut& cut,
                                   std::span<const int> lengths) {
  CudaStashCarvers measure;
  static_cast<void>(CudaStage::lay_out(spec, cut, lengths, measure));
  return static_cast<std::int64_t>(CudaArena::rounded(measure.until_input.bytes()) +
                                   CudaArena::rounded(measure.until_weight.bytes()));
}

Result<void> CudaStashes::keep(const ModelSpec& spec, const StageCut& cut,
                               std::span<const int> lengths, int microbatch) {
  CudaStashCarvers measure;
  static_cast<void>(CudaStage::lay_out(spec, cut, lengths, measure));
  Kept& of = kept_[index(cut.stage, microbatch)];
  Result<void> taken = take(measure.until_input.bytes(), of.until_input);
  if (taken.ok()) taken = take(measure.until_weight.bytes(), of.until_weight);
  if (!taken.ok()) return taken;
  CudaStashCarvers carvers{CudaCarver(of.until_input), CudaCarver(of.until_weight)};
  of.stash = CudaStage::lay_out(spec, cut, lengths, carvers);
  return {};
}

void CudaStashes::give_back(int stage, int microbatch, Returns returned) {
  Kept& of = kept_[index(stage, microbatch)];
  if (returned == Returns::kEverything || returned == Returns::kAllButStash) {
    release(of.until_input);
  }
  if (returned == Returns::kEverything || returned == Returns::kStash) release(of.until_weight);
}

}  // namespace rrfp
