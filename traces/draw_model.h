// A DrawModel made ready to draw: its distributions as samplers, its selection
// as a list of rows, its episodes as a timeline.
//
// Invariants
//  1. A draw depends on (seed, iteration or episode, replica, position of the
//     model, element) and on nothing else.
//  2. Lane 0 of a draw is its value, lane 1 whether there is one, lanes 2 and 3
//     in which iterations it repeats.
//
// Thread safety: immutable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "scheduler_core/program.h"
#include "traces/distribution.h"
#include "traces/episode_timeline.h"
#include "traces/scenario.h"
#include "traces/time_axis.h"
#include "traces/world_model.h"

namespace rrfp {

class CompiledDraw final : public WorldModel {
 public:
  /// `position` in the list of the scenario.
  CompiledDraw(const DrawModel& model, std::size_t position, const Scenario& scenario,
               const Program& program, std::shared_ptr<const TimeAxis> axis);

  void apply(const WorldId& world, ComputeTable& out) const override;
  void apply(const WorldId& world, MessageTable& out) const override;
  void delay_inputs(const WorldId& world, std::vector<std::int64_t>& input_ready_ns) const override;
  bool on_inputs() const override { return model_.target == DrawTarget::kInput; }

 private:
  // Tasks of one stage and slot, messages of one edge, or inputs.
  struct Row {
    int table_row = 0;  // stage * kSlots + slot, edge, or 0
    int scope_row = 0;  // which draw it shares, microbatch apart
    int stage = 0;      // that computes, or sends
    Slot slot = Slot::kForward;
    int microbatches = 0;  // the first so many
    int sampler = 0;
    int hit_element = 0;  // of one replica: the rank, or the pair of ranks
  };

  class Draws;

  void add_task_rows(const Program& program);
  void add_message_rows(const Program& program);
  bool selects(const Edge& edge) const;
  int scope_row(int stage, Slot slot, int rank) const;
  void compile_timeline(const Episodes& episodes, const Program& program);
  bool holds_in(const WorldId& world) const;
  double mean_of(const Row& row) const;
  bool by_microbatch() const;
  bool of_all_replicas() const;

  DrawModel model_;
  std::size_t position_ = 0;
  std::uint64_t seed_ = 0;
  int lanes_ = 1;
  int replicas_ = 1;
  int microbatches_ = 1;
  std::shared_ptr<const TimeAxis> axis_;
  std::vector<Sampler> samplers_;
  std::vector<Row> rows_;
  std::optional<EpisodeTimeline> timeline_;
  int hit_elements_ = 1;        // of one replica
  std::vector<int> hit_index_;  // by replica and element: its number among those that can be hit
  double long_run_ = 1;         // how often there is a draw
};

/// Whether a selection has `one`: an empty list selects all.
template <typename T>
bool lists_or_all(const std::vector<T>& list, const T& one) {
  return list.empty() || std::find(list.begin(), list.end(), one) != list.end();
}

/// The kind of task that a slot holds.
Kind kind_of(Slot slot, bool split_backward);

/// Whether a list of kinds means a slot: an empty one means all, and B means
/// I and W as well.
bool means(const std::vector<Kind>& kinds, Slot slot, bool split_backward);

}  // namespace rrfp
