#include "executor/cuda_stashes.h"

#include <algorithm>

namespace rrfp {

namespace {

// The arena's groups.
enum Group : std::size_t { kUntilInput, kUntilWeight, kGroups };

bool gives_back_first(Returns returned) {
  return returned == Returns::kEverything || returned == Returns::kAllButStash;
}

bool gives_back_second(Returns returned) {
  return returned == Returns::kEverything || returned == Returns::kStash;
}

CudaStashCarvers measure(const ModelSpec& spec, const StageCut& cut, std::span<const int> lengths) {
  CudaStashCarvers measured;
  static_cast<void>(CudaStage::lay_out(spec, cut, lengths, measured));
  return measured;
}

// When the two blocks of a stage's microbatch are out; a moment is an F of the rank.
struct KeptMoments {
  Moments until_input;
  Moments until_weight;
};

// What stands further than this behind a task begins only once that was seen to end. Either of the
// two is at most window - 1 places from its turn; and as a task begins, the device may still hold
// the queue_depth - 1 before it.
std::int64_t reach(const StashLimits& limits) {
  return 2 * (std::int64_t{limits.window} - 1) + limits.queue_depth - 1;
}

// By stage and microbatch. Without a window nothing is known; and orders that cannot be run to
// their end, or only out of order, have a backward before its F.
std::vector<KeptMoments> kept_moments(const Program& program, const StashLimits& limits) {
  std::vector<KeptMoments> moments(
      static_cast<std::size_t>(program.stages() * program.microbatches()));
  if (limits.window == kNoWindow) return moments;
  const auto index = [&](const Task& task) {
    return static_cast<std::size_t>(task.stage * program.microbatches() + task.microbatch);
  };
  std::vector<std::int64_t> taken_at;  // positions of all F
  for (std::size_t position = 0; position < limits.order.size(); ++position) {
    const Task& task = limits.order[position];
    if (task.kind != Kind::kForward) continue;
    KeptMoments& of = moments[index(task)];
    of.until_input.from = of.until_weight.from = static_cast<int>(taken_at.size());
    taken_at.push_back(static_cast<std::int64_t>(position));
  }
  for (std::size_t position = 0; position < limits.order.size(); ++position) {
    const Task& task = limits.order[position];
    const auto last = std::upper_bound(taken_at.begin(), taken_at.end(),
                                       static_cast<std::int64_t>(position) + reach(limits));
    const Returns returned = returned_by(program, program.find(task));
    KeptMoments& of = moments[index(task)];
    const int until = std::max(of.until_input.from + 1, static_cast<int>(last - taken_at.begin()));
    if (gives_back_first(returned)) of.until_input.until = until;
    if (gives_back_second(returned)) of.until_weight.until = until;
  }
  return moments;
}

// What would need less memory.
const char* remedy(const StashLimits& limits) {
  if (limits.window == 1) {
    return "a schedule that holds fewer microbatches, shorter sequences, or fewer ranks on this "
           "GPU need less";
  }
  if (limits.budget_bytes) return "a smaller memory budget, or fewer ranks on this GPU, need less";
  return "a memory budget (\"budget_activations\" of a policy), or fewer ranks on this GPU, "
         "need less";
}

}  // namespace

Result<void> CudaStashes::begin(const ModelSpec& spec, const std::vector<StageCut>& cuts,
                                const std::vector<std::span<const int>>& lengths,
                                const Program& program, int rank, const StashLimits& limits) {
  for (Kept& of : kept_) {
    release(of.until_input);
    release(of.until_weight);
  }
  microbatches_ = program.microbatches();
  kept_.assign(static_cast<std::size_t>(program.stages() * microbatches_), {});
  const std::vector<KeptMoments> moments = kept_moments(program, limits);
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
      const KeptMoments& of = moments[index(stage, m)];
      if (first > 0) groups[kUntilInput].push_back({first, all, of.until_input});
      if (second > 0) groups[kUntilWeight].push_back({second, last, of.until_weight});
    }
  }
  Result<void> begun =
      arena_.begin(groups, {limits.budget_bytes, limits.reserve_bytes, remedy(limits)});
  if (!begun.ok()) return begun;
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
  if (gives_back_first(returned)) release(of.until_input);
  if (gives_back_second(returned)) release(of.until_weight);
}

}  // namespace rrfp
