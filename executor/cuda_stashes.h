// What the microbatches of a rank's stages keep between their passes, in an
// arena as large as the budget of the rank's scheduler.
//
// Invariant: what is given back is what the scheduler counts as given back when
// a task has ended; so what is held never exceeds what the scheduler counted.
//
// Not thread safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/cuda_arena.h"
#include "executor/cuda_model_stage.h"
#include "scheduler_core/admission.h"

namespace rrfp {

class CudaStashes {
 public:
  /// Nothing is kept any more; the arena has at least so many bytes. REQUIRES:
  /// no work is under way.
  Result<void> begin(int stages, int microbatches, std::int64_t arena_bytes);

  /// What keep() takes.
  static std::int64_t bytes_of(const ModelSpec& spec, const StageCut& cut,
                               std::span<const int> lengths);
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

 private:
  struct Kept {
    std::byte* until_input = nullptr;
    std::byte* until_weight = nullptr;
    CudaStage::Stash stash;
  };

  std::size_t index(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage * microbatches_ + microbatch);
  }
  Result<void> take(std::size_t bytes, std::byte*& block);
  void release(std::byte*& block);

  int microbatches_ = 0;
  CudaArena arena_;
  std::vector<Kept> kept_;
};

}  // namespace rrfp
