// A simulator as a textbook has it, to be compared with: a binary heap of
// events (std::priority_queue), and standard containers keyed by what they are
// about: an ordered map of the ready tasks of each rank (by hint position),
// positions and unmet dependencies by task, bytes held by stage. An idle rank
// looks through its map from the front for the first task that is admissible.
// It is neither tuned nor slowed down; flat tables by task number, which the
// simulator has, would make it about twice as fast.
//
// It simulates any stage graph with a split backward and a budget for each
// rank under the rule of shares, in eager mode without bandwidth, lanes,
// queue, window or anticipation.
#pragma once

#include <cstdint>
#include <memory>

#include "traces/prepared_case.h"

namespace rrfp {

class TextbookEngine {
 public:
  /// REQUIRES: `prepared` has activation_bytes and budget_bytes, and outlives
  /// the engine.
  explicit TextbookEngine(const PreparedCase& prepared);
  ~TextbookEngine();

  /// Runs one iteration and returns its makespan.
  std::int64_t run();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace rrfp
