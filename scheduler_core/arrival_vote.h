// When has a message arrived for a tensor-parallel group? Each lane has its
// own copy of every message; the group's leader counts the lanes that have
// told it of theirs.
//
// No allocation after construction. Not thread safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scheduler_core/check.h"

namespace rrfp {

class ArrivalVote {
 public:
  static constexpr int kMostLanes = 64;

  /// For messages 0 to messages - 1 and lanes 0 to lanes - 1.
  /// REQUIRES: 1 <= lanes <= kMostLanes.
  ArrivalVote(int messages, int lanes)
      : all_(lanes == kMostLanes ? ~std::uint64_t{0} : (std::uint64_t{1} << lanes) - 1),
        seen_(static_cast<std::size_t>(messages), 0) {
    RRFP_CHECK(lanes >= 1 && lanes <= kMostLanes);
  }

  /// Back to the start of an iteration.
  void reset() { std::fill(seen_.begin(), seen_.end(), 0); }

  /// `lane` has been reported to have `message`.
  bool has(int message, int lane) const {
    return (seen_[static_cast<std::size_t>(message)] >> lane & 1) != 0;
  }

  /// Lane `lane` has `message`, and the leader knows. True where that was the
  /// last one: the message has now arrived for the group.
  /// REQUIRES: not has(message, lane).
  bool on_lane(int message, int lane) {
    std::uint64_t& seen = seen_[static_cast<std::size_t>(message)];
    const std::uint64_t bit = std::uint64_t{1} << lane;
    RRFP_CHECK((seen & bit) == 0 && (all_ & bit) != 0);
    seen |= bit;
    return seen == all_;
  }

 private:
  std::uint64_t all_;
  std::vector<std::uint64_t> seen_;  // by message, one bit per lane
};

}  // namespace rrfp
