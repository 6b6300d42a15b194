// Draws worlds from the models of a scenario.
//
// Invariants
//  1. Factors of several models multiply in the order of the list, then the
//     time is rounded to the nearest ns; extra times are added after that.
//  2. expected_ns holds the base durations times the factors of the models that
//     are known and the mean factors of the others; it is left empty where all
//     are known. The same holds for expected latencies.
//  3. A network has one bandwidth. What a model takes from that of a link, or
//     adds to a transmission, is added to the latency of the message: by as much
//     as it takes longer. The link itself is busy for the base time.
//
// Thread safety: immutable; share freely.
#pragma once

#include <memory>
#include <vector>

#include "scheduler_core/program.h"
#include "traces/case.h"
#include "traces/scenario.h"
#include "traces/world_model.h"

namespace rrfp {

class VariabilityDraws {
 public:
  VariabilityDraws(const Scenario& scenario, const Program& program);

  /// Fills in durations, latencies, instants of inputs and bytes of messages of
  /// a case that has what no iteration changes. REQUIRES: the same scenario.
  void draw(const Scenario& scenario, const WorldId& world, Case& out) const;

 private:
  void draw_durations(const Scenario& scenario, const WorldId& world, Case& out) const;
  void draw_latencies(const Scenario& scenario, const WorldId& world, Case& out) const;
  void draw_inputs(const WorldId& world, Case& out) const;

  std::vector<std::shared_ptr<const WorldModel>> models_;
};

}  // namespace rrfp
