// When things happen for models that follow a clock (degraded links, episodes,
// a daily wave). A world is drawn before anything runs, so the clock cannot be
// that of the run; policies would meet different worlds, too. It is a nominal
// one, made of the scenario's base times alone:
//
//   - one microbatch enters every `interval`, the work per microbatch of the
//     busiest rank, and goes straight through: forward to the last stage, back
//     again, W right after I. That is 1f1b with nothing in the way;
//   - an iteration takes as long as that, plus gradient synchronisation and
//     optimizer;
//   - iteration i begins at i * iteration_spacing, by default back to back.
//
// Thread safety: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler_core/program.h"
#include "traces/scenario.h"

namespace rrfp {

class TimeAxis {
 public:
  TimeAxis(const Scenario& scenario, const Program& program);

  /// How long an iteration takes.
  std::int64_t iteration_ns() const { return iteration_ns_; }
  std::int64_t start_ns(int iteration) const;

  /// From the beginning of the iteration.
  std::int64_t task_start_ns(int stage, Slot slot, int microbatch) const;
  std::int64_t task_end_ns(int stage, Slot slot, int microbatch) const;

 private:
  struct Times {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
  };

  Times& of(int stage, Slot slot) {
    return first_[static_cast<std::size_t>(stage * kSlots + static_cast<int>(slot))];
  }
  const Times& of(int stage, Slot slot) const {
    return first_[static_cast<std::size_t>(stage * kSlots + static_cast<int>(slot))];
  }
  void place_first(const Scenario& scenario, const Program& program);

  std::vector<Times> first_;  // by stage and slot: of microbatch 0
  std::int64_t interval_ns_ = 0;
  std::int64_t iteration_ns_ = 0;
  std::int64_t spacing_ns_ = 0;
};

}  // namespace rrfp
