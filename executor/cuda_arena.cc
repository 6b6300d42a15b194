#include "executor/cuda_arena.h"

#include <algorithm>
#include <string>

#include "executor/cuda_launchers.h"
#include "scheduler_core/check.h"

namespace rrfp {

namespace {

constexpr const char* kPurpose = "activations";

}  // namespace

Result<void> CudaArena::begin(const std::vector<std::vector<SlotDemand>>& groups,
                              const Limits& limits) {
  RRFP_CHECK(blocks_.empty());
  std::vector<std::vector<SlotClass>> classes;
  std::size_t bytes = 0;
  for (const std::vector<SlotDemand>& demands : groups) {
    classes.push_back(slot_classes(demands, limits.budget_bytes));
    for (const SlotClass& of : classes.back()) bytes += of.slots * rounded(of.bytes);
  }
  groups_.clear();
  remedy_ = limits.remedy;
  as_needed_ = limits.reserve_bytes && bytes > std::max(*limits.reserve_bytes, memory_.bytes());
  if (as_needed_) {
    memory_ = CudaMemory();
    return {};
  }
  forget_spare();
  if (bytes > memory_.bytes()) {
    memory_ = CudaMemory();
    Result<CudaMemory> memory = CudaMemory::create(bytes, kPurpose, remedy_);
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

Result<CudaArena::Slots*> CudaArena::slots_for(std::size_t group, std::size_t bytes) {
  RRFP_CHECK(group < groups_.size());
  std::vector<Slots>& of_group = groups_[group];
  const auto slots = std::find_if(of_group.begin(), of_group.end(),
                                  [&](const Slots& of) { return of.bytes >= bytes; });
  if (slots != of_group.end() && !slots->free.empty()) return &*slots;
  return Error{"no room is left for an activation of " + std::to_string(bytes) + " bytes beside " +
               std::to_string(held_bytes_) +
               " bytes: that is more than the order and the memory budget of the rank let "
               "through, for which all memory was allocated before the iteration"};
}

// What is spare and not much too large; where nothing can be allocated any more, at the expense of
// all that is spare.
Result<CudaMemory> CudaArena::spare_or_new(std::size_t bytes) {
  const auto spare = spare_.lower_bound(bytes);
  if (spare != spare_.end() && spare->first <= 2 * bytes) {
    CudaMemory memory = std::move(spare->second);
    spare_.erase(spare);
    return memory;
  }
  Result<CudaMemory> memory = CudaMemory::create(bytes, kPurpose, remedy_);
  if (!memory.ok() && !spare_.empty()) {
    forget_spare();
    memory = CudaMemory::create(bytes, kPurpose, remedy_);
  }
  if (memory.ok()) as_needed_bytes_ += bytes;
  return memory;
}

void CudaArena::forget_spare() {
  for (const auto& [bytes, memory] : spare_) as_needed_bytes_ -= bytes;
  spare_.clear();
}

Result<std::byte*> CudaArena::take(std::size_t group, std::size_t bytes) {
  RRFP_CHECK(bytes > 0);
  Block taken;
  taken.bytes = rounded(bytes);
  std::byte* block = nullptr;
  if (as_needed_) {
    Result<CudaMemory> memory = spare_or_new(taken.bytes);
    if (!memory.ok()) return memory.error();
    taken.own = std::move(*memory);
    block = taken.own.data();
  } else {
    const Result<Slots*> slots = slots_for(group, bytes);
    if (!slots.ok()) return slots.error();
    taken.from = *slots;
    block = taken.from->free.back();
    taken.from->free.pop_back();
  }
  note_block_taken(block, taken.bytes);
  held_bytes_ += static_cast<std::int64_t>(taken.bytes);
  high_water_bytes_ = std::max(high_water_bytes_, held_bytes_);
  blocks_.emplace(block, std::move(taken));
  return block;
}

void CudaArena::give_back(std::byte* block) {
  const auto found = blocks_.find(block);
  RRFP_CHECK(found != blocks_.end());
  Block returned = std::move(found->second);
  blocks_.erase(found);
  note_block_returned(block);
  held_bytes_ -= static_cast<std::int64_t>(returned.bytes);
  if (returned.from != nullptr) {
    returned.from->free.push_back(block);
  } else {
    spare_.emplace(returned.own.bytes(), std::move(returned.own));
  }
}

}  // namespace rrfp
