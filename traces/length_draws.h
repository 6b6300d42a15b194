// MicrobatchLengths made ready to draw.
//
// Invariants
//  1. The lengths of a microbatch depend on (seed, iteration, replica, position
//     of the model, microbatch) and on nothing else: all stages see the same.
//
// Thread safety: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler_core/program.h"
#include "scheduler_core/random.h"
#include "scheduler_core/result.h"
#include "traces/world_model.h"

namespace rrfp {

/// Refuses lengths so short that packing a microbatch would take seconds.
Result<void> check_packed(const MicrobatchLengths& model);

class CompiledLengths final : public WorldModel {
 public:
  CompiledLengths(const MicrobatchLengths& model, std::size_t position, std::uint64_t seed,
                  const Program& program);

  using WorldModel::apply;
  void apply(const WorldId& world, ComputeTable& out) const override;
  void scale_messages(const WorldId& world,
                      std::vector<std::int64_t>& message_bytes) const override;

 private:
  /// Of one microbatch, in units.
  struct Size {
    double sum = 0;
    double squares = 0;
  };

  Size draw(const DrawSeries& draws, int microbatch) const;
  std::vector<Size> draw_all(const WorldId& world) const;

  MicrobatchLengths model_;
  std::size_t position_ = 0;
  std::uint64_t seed_ = 0;
  int microbatches_ = 1;
  Sampler length_;
  std::vector<int> cost_of_row_;  // by stage and slot; -1: none
  Size mean_;                     // where schedulers do not know better
};

}  // namespace rrfp
