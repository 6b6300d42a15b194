// What the microbatches of a rank's stages keep between their passes, in an
// arena that has room for whatever the order of the rank's tasks, as far as it
// binds, and the budget of its scheduler let through.
//
// A microbatch keeps two blocks of a stage: one until I, during which all of its
// activation is counted, and one until W, of which its stash is what is counted
// in the end. So the first blocks are one group of the arena, the second another.
//
// Invariant: what is given back is what the scheduler counts as given back when
// a task has ended; so what is held never exceeds what the scheduler counted.
//
// Not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/cuda_arena.h"
#include "executor/cuda_model_stage.h"
#include "scheduler_core/admission.h"
#include "scheduler_core/policy.h"

namespace rrfp {

/// What bounds the microbatches that a rank keeps at a time.
struct StashLimits {
  std::span<const Task> order = {};  ///< of all its tasks
  int window = kNoWindow;            ///< in which the scheduler keeps to the order
  int queue_depth = 1;               ///< tasks that a device is given before their end is seen
  std::optional<std::int64_t> budget_bytes = {};
  /// Where more would have to be reserved, memory is allocated as it is needed;
  /// none: never.
  std::optional<std::size_t> reserve_bytes = {};
};

class CudaStashes {
 public:
  /// Nothing is kept any more; there is room for microbatches of these lengths
  /// (by root) of `rank`'s stages, as many as are within the limits. REQUIRES:
  /// no work is under way.
  Result<void> begin(const ModelSpec& spec, const std::vector<StageCut>& cuts,
                     const std::vector<std::span<const int>>& lengths, const Program& program,
                     int rank, const StashLimits& limits);

  /// Takes what a microbatch keeps of a stage, before its F.
  Result<void> keep(const ModelSpec& spec, const StageCut& cut, std::span<const int> lengths,
                    int microbatch);
  const CudaStage::Stash& stash(int stage, int microbatch) const {
    return kept_[index(stage, microbatch)].stash;
  }
  /// A task has been seen to end.
  void give_back(int stage, int microbatch, Returns returned);

  /// From now on.
  void forget_high_water() { arena_.forget_high_water(); }
  /// Of this iteration.
  std::int64_t high_water_bytes() const { return arena_.high_water_bytes(); }
  std::int64_t held_bytes() const { return arena_.held_bytes(); }
  std::int64_t reserved_bytes() const { return arena_.reserved_bytes(); }

 private:
  struct Kept {
    std::byte* until_input = nullptr;
    std::byte* until_weight = nullptr;
    CudaStage::Stash stash;
  };

  std::size_t index(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage * microbatches_ + microbatch);
  }
  Result<void> take(std::size_t group, std::size_t bytes, std::byte*& block);
  void release(std::byte*& block);

  int microbatches_ = 0;
  CudaArena arena_;
  std::vector<Kept> kept_;
};

}  // namespace rrfp
