// Brings the clocks of ranks together by the causal order of their messages.
//
// A transfer ends after both sides have begun: with offset d = clock of B -
// clock of A, a message whose kernels ran over [a0, a1] on A's clock and
// [b0, b1] on B's gives b0 - a1 <= d <= b1 - a0. All messages together bound
// the offset of each rank from the first (shortest paths over differences).
//
// Thread safety: pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace rrfp {

/// least <= offset of `to` - offset of `from` <= most.
struct ClockBound {
  int from = 0;
  int to = 0;
  std::int64_t least_ns = 0;
  std::int64_t most_ns = 0;
};

struct AlignedClocks {
  struct Clock {
    std::int64_t offset_ns = 0;  ///< as recorded = aligned + offset
    /// Against the first clock that messages tie it to; nothing where none of
    /// a lower number is tied to it. Clock 0 has 0, where any is tied to it.
    std::optional<std::int64_t> error_ns;
  };

  std::vector<Clock> clocks;
  /// Whether the clocks as recorded break the order, so that they were moved.
  bool moved = false;
  /// By how much bounds had to be widened to hold together: drift, or pairs
  /// that are none. It is contained in the errors.
  std::int64_t contradiction_ns = 0;
};

/// Clocks that keep the order as recorded stay as they are; else each takes
/// the middle of what its bounds leave. `grain_ns`: what two times of the
/// recording may be off without meaning anything.
AlignedClocks align_clocks(int clocks, const std::vector<ClockBound>& bounds,
                           std::int64_t grain_ns);

}  // namespace rrfp
