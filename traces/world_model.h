// What the models of a scenario make of one world, before it is rounded to ns.
// Each model adds its part to the tables below, in the order of the list.
//
// Invariants
//  1. Common random numbers: what a model draws depends on (seed, iteration or
//     episode, replica, its position in the list, element) and on nothing else.
//
// Thread safety: models are immutable, tables are values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler_core/program.h"
#include "traces/scenario.h"
#include "traces/time_axis.h"

namespace rrfp {

/// What happens, and what schedulers expect.
struct Effect {
  double factor = 1;
  double expected_factor = 1;
  std::int64_t extra_ns = 0;
  double expected_extra_ns = 0;
};

/// Which iteration and replica is drawn.
struct WorldId {
  int iteration = 0;
  int replica = 0;
};

struct ComputeTable {
  std::vector<Effect> tasks;  ///< by TaskId
  bool all_known = true;      ///< no model has given schedulers another time than the real one
};

/// By message: crossing edges only, [edge][lane * microbatches + microbatch].
struct MessageTable {
  std::vector<std::vector<Effect>> latency;
  /// Of the transmission; extra times are not used. Empty: no model is on it.
  std::vector<std::vector<Effect>> transmission;
  /// True where a model has been applied: what is expected is not what happens.
  bool varies = false;
  /// True where a model can delay messages whose latency is 0.
  bool adds = false;
};

/// A model of a scenario, made ready to draw. What it is not on, it leaves alone.
class WorldModel {
 public:
  virtual ~WorldModel() = default;

  virtual void apply(const WorldId& /*world*/, ComputeTable& /*out*/) const {}
  virtual void apply(const WorldId& /*world*/, MessageTable& /*out*/) const {}
  /// Adds to the time at which each microbatch can be read.
  virtual void delay_inputs(const WorldId& /*world*/,
                            std::vector<std::int64_t>& /*input_ready_ns*/) const {}
  virtual bool on_inputs() const { return false; }
  /// Scales what each stage sends, by TaskId; empty stays empty.
  virtual void scale_messages(const WorldId& /*world*/,
                              std::vector<std::int64_t>& /*message_bytes*/) const {}
};

/// `position` in the list of the scenario. Null for a model that does nothing.
std::shared_ptr<const WorldModel> make_world_model(const VariabilityModel& model,
                                                   std::size_t position, const Scenario& scenario,
                                                   const Program& program,
                                                   const std::shared_ptr<const TimeAxis>& axis);

/// Which model, of which replica, for which lane. Bits: 24, 20, 20.
inline std::uint64_t purpose_of(std::size_t model, int replica, int lane) {
  return (static_cast<std::uint64_t>(model + 1) << 40) |
         (static_cast<std::uint64_t>(replica) << 20) | static_cast<std::uint64_t>(lane);
}

/// A row (stage and slot, edge, rank) and the microbatch in it. Bits: 44, 20.
inline std::uint64_t element(int row, int microbatch) {
  return (static_cast<std::uint64_t>(row) << 20) | static_cast<std::uint64_t>(microbatch);
}

}  // namespace rrfp
