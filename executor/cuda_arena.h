// Where the activations of a rank lie: one piece of device memory, allocated
// before the first task of an iteration and cut into slots, so that all that
// the rank's order and budget let through has room (cuda_slots.h). Nothing is
// allocated while tasks run, unless that piece would be larger than is allowed:
// then every block is one that is spare, or is allocated when it is taken.
//
// Blocks of one group are never counted twice: what two blocks of it count for
// together is the sum of both.
//
// Invariants
//  1. A block is out from take() to give_back().
//  2. give_back() comes after all work that uses the block has been seen to end.
//
// Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "executor/cuda_memory.h"
#include "executor/cuda_slots.h"

namespace rrfp {

class CudaArena {
 public:
  /// Blocks begin and end at multiples of this.
  static constexpr std::size_t kAlignment = 256;
  static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  struct Limits {
    std::optional<std::int64_t> budget_bytes = {};  ///< of what all groups together count
    /// What would need more is allocated as it is taken; none: never.
    std::optional<std::size_t> reserve_bytes = {};
    const char* remedy = "";  ///< what needs less, for errors
  };

  /// What may be taken from now on, by group; allocates where there is less.
  /// REQUIRES: no block is out, and the device may be waited for.
  Result<void> begin(const std::vector<std::vector<SlotDemand>>& groups, const Limits& limits);

  /// One of the group's blocks. REQUIRES: bytes > 0. An error where there is no
  /// room, which what keeps to begin() never meets where memory was reserved.
  Result<std::byte*> take(std::size_t group, std::size_t bytes);
  void give_back(std::byte* block);

  std::int64_t held_bytes() const { return held_bytes_; }
  std::int64_t high_water_bytes() const { return high_water_bytes_; }
  /// From now on.
  void forget_high_water() { high_water_bytes_ = held_bytes_; }
  /// Allocated, whether or not it is held.
  std::int64_t reserved_bytes() const {
    return static_cast<std::int64_t>(memory_.bytes() + as_needed_bytes_);
  }

 private:
  struct Slots {
    std::size_t bytes = 0;  // of each
    std::vector<std::byte*> free;
  };
  struct Block {
    Slots* from = nullptr;  // null: it has memory of its own
    CudaMemory own;
    std::size_t bytes = 0;  // that are held
  };

  Result<Slots*> slots_for(std::size_t group, std::size_t bytes);
  Result<CudaMemory> spare_or_new(std::size_t bytes);
  void forget_spare();

  CudaMemory memory_;
  bool as_needed_ = false;
  const char* remedy_ = "";
  std::multimap<std::size_t, CudaMemory> spare_;  // by bytes; as needed
  std::size_t as_needed_bytes_ = 0;               // of them, and of blocks with their own memory
  std::vector<std::vector<Slots>> groups_;        // each in ascending order of bytes
  std::map<std::byte*, Block> blocks_;            // that are out
  std::int64_t held_bytes_ = 0;
  std::int64_t high_water_bytes_ = 0;
};

}  // namespace rrfp
