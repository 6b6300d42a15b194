// Random cases over everything that a case can say, small enough to run by the
// thousand: the worlds in which the simulator meets the reference model.
//
// Invariants
//  1. A case is a function of its seed and options alone.
//  2. Every budget is at least the least that works, and every hint fits its
//     program, so that a case without a window must complete.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "traces/case.h"

namespace rrfp::model {

struct RandomCaseOptions {
  int max_ranks = 4;
  int max_stages = 6;
  int max_microbatches = 5;
  /// May block: fixed orders that contradict each other or their budgets.
  bool windows = true;
  /// Implies a window of 1.
  bool rendezvous = true;
};

Case random_case(std::uint64_t seed, const RandomCaseOptions& options = {});

}  // namespace rrfp::model
