#include "executor/cuda_stashes.h"

namespace rrfp {

namespace {

// The arena's groups.
enum Group : std::size_t { kUntilInput, kUntilWeight, kGroups };

CudaStashCarvers measure(const ModelSpec& spec, const StageCut& cut, std::span<const int> lengths) {
  CudaStashCarvers measured;
  static_cast<void>(CudaStage::lay_out(spec, cut, lengths, measured));
  return measured;
}

}  // namespace

Result<void> CudaStashes::begin(const ModelSpec& spec, const std::vector<StageCut>& cuts,
                                const std::vector<std::span<const int>>& lengths,
                                const Program& program, int rank,
                                std::optional<std::int64_t> budget_bytes) {
  for (Kept& of : kept_) {
    release(of.until_input);
    release(of.until_weight);
  }
  microbatches_ = program.microbatches();
  kept_.assign(static_cast<std::size_t>(program.stages() * microbatches_), {});
  std::vector<std::vector<SlotDemand>> groups(kGroups);
  for (const int stage : program.stages_of(rank)) {
    for (int m = 0; m < microbatches_; ++m) {
      const CudaStashCarvers kept = measure(spec, cuts[static_cast<std::size_t>(stage)],
                                            lengths[static_cast<std::size_t>(m)]);
      const std::size_t first = kept.until_input.bytes();
      const std::size_t second = kept.until_weight.bytes();
      const bool stays = program.exists(program.task_id(stage, Slot::kWeight, m));
      const auto all = static_cast<std::int64_t>(first + second);
      const auto last = stays ? static_cast<std::int64_t>(second) : all;
      if (first > 0) groups[kUntilInput].push_back({first, all});
      if (second > 0) groups[kUntilWeight].push_back({second, last});
    }
  }
  if (Result<void> begun = arena_.begin(groups, budget_bytes); !begun.ok()) return begun;
  arena_.forget_high_water();
  return {};
}

Result<void> CudaStashes::take(std::size_t group, std::size_t bytes, std::byte*& block) {
  if (bytes == 0) return {};
  const Result<std::byte*> taken = arena_.take(group, bytes);
  if (!taken.ok()) return taken.error();
  block = *taken;
  return {};
}

void CudaStashes::release(std::byte*& block) {
  if (block != nullptr) arena_.give_back(block);
  block = nullptr;
}

Result<void> CudaStashes::keep(const ModelSpec& spec, const StageCut& cut,
                               std::span<const int> lengths, int microbatch) {
  const CudaStashCarvers kept = measure(spec, cut, lengths);
  Kept& of = kept_[index(cut.stage, microbatch)];
  Result<void> taken = take(kUntilInput, kept.until_input.bytes(), of.until_input);
  if (taken.ok()) taken = take(kUntilWeight, kept.until_weight.bytes(), of.until_weight);
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
