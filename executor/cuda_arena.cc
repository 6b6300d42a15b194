#include "executor/cuda_arena.h"

#include <algorithm>
#include <string>

#include "executor/cuda_launchers.h"
#include "scheduler_core/check.h"

namespace rrfp {

Result<void> CudaArena::begin(const std::vector<std::vector<SlotDemand>>& groups,
                              std::optional<std::int64_t> budget_bytes) {
  RRFP_CHECK(blocks_.empty());
  std::vector<std::vector<SlotClass>> classes;
  std::size_t bytes = 0;
  for (const std::vector<SlotDemand>& demands : groups) {
    classes.push_back(slot_classes(demands, budget_bytes));
    for (const SlotClass& of : classes.back()) bytes += of.slots * rounded(of.bytes);
  }
  groups_.clear();
  if (bytes > memory_.bytes()) {
    memory_ = CudaMemory();
    Result<CudaMemory> memory = CudaMemory::create(
        bytes, "activations", "a smaller memory budget, or fewer ranks on this GPU, need less");
    if (!memory.ok()) return memory.error();
    memory_ = std::move(*memory);
  }
  std::byte* next = memory_.data();
  for (const std::vector<SlotClass>& of_group : classes) {
    groups_.emplace_back();
    for (const SlotClass& of : of_group) {
      Slots slots{of.bytes, {}};
      for (std::size_t i = 0; i < of.slots; ++i, next += rounded(of.bytes)) {
        slots.free.push_back(next);
      }
      groups_.back().push_back(std::move(slots));
    }
  }
  return {};
}

Result<std::byte*> CudaArena::take(std::size_t group, std::size_t bytes) {
  RRFP_CHECK(bytes > 0 && group < groups_.size());
  std::vector<Slots>& of_group = groups_[group];
  const auto slots = std::find_if(of_group.begin(), of_group.end(),
                                  [&](const Slots& of) { return of.bytes >= bytes; });
  if (slots == of_group.end() || slots->free.empty()) {
    return Error{"no room is left for an activation of " + std::to_string(bytes) +
                 " bytes beside " + std::to_string(held_bytes_) +
                 " bytes: that is more than the memory budget lets "
                 "through, for which all memory was allocated before the iteration"};
  }
  std::byte* const block = slots->free.back();
  slots->free.pop_back();
  blocks_.emplace(block, Block{&*slots, rounded(bytes)});
  note_block_taken(block, rounded(bytes));
  held_bytes_ += static_cast<std::int64_t>(rounded(bytes));
  high_water_bytes_ = std::max(high_water_bytes_, held_bytes_);
  return block;
}

void CudaArena::give_back(std::byte* block) {
  const auto found = blocks_.find(block);
  RRFP_CHECK(found != blocks_.end());
  const auto [slots, bytes] = found->second;
  blocks_.erase(found);
  note_block_returned(block);
  held_bytes_ -= static_cast<std::int64_t>(bytes);
  slots->free.push_back(block);
}

}  // namespace rrfp
