// The next event of each rank in a tournament tree: one pending time per
// rank, the least at the root.
//
// No allocation after construction. Not thread safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace rrfp {

class NextEventTree {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  explicit NextEventTree(int ranks)
      : leaves_(std::bit_ceil(static_cast<std::size_t>(std::max(ranks, 2)))),
        times_(2 * leaves_, kNever) {}

  void reset() { std::fill(times_.begin(), times_.end(), kNever); }

  std::int64_t least() const { return times_[1]; }
  std::int64_t at(int rank) const { return times_[leaves_ + static_cast<std::size_t>(rank)]; }

  void set(int rank, std::int64_t time_ns) {
    std::int64_t* const times = times_.data();
    std::size_t node = leaves_ + static_cast<std::size_t>(rank);
    times[node] = time_ns;
    while (node > 1) {
      time_ns = std::min(time_ns, times[node ^ 1]);
      node /= 2;
      times[node] = time_ns;
    }
  }

  /// The one rank whose time is least(), or -1 where there are several.
  int only_least() const {
    const std::int64_t* const times = times_.data();
    const std::size_t leaves = leaves_;
    const std::int64_t least = times[1];
    std::size_t node = 1;
    bool several = false;
    while (node < leaves) {
      node *= 2;
      const bool left = times[node] == least;
      several |= left && times[node + 1] == least;
      node += left ? 0 : 1;
    }
    return several ? -1 : static_cast<int>(node - leaves);
  }

  /// Calls `visit(rank)` for each rank whose time is least(), ascending.
  /// REQUIRES: least() != kNever.
  template <typename Visit>
  void each_least(const Visit& visit) const {
    walk(1, times_[1], visit);
  }

 private:
  template <typename Visit>
  void walk(std::size_t node, std::int64_t time_ns, const Visit& visit) const {
    while (node < leaves_) {
      const bool left = times_[2 * node] == time_ns;
      if (left && times_[2 * node + 1] == time_ns) {
        walk(2 * node, time_ns, visit);
        node = 2 * node + 1;
      } else {
        node = 2 * node + (left ? 0 : 1);
      }
    }
    visit(static_cast<int>(node - leaves_));
  }

  std::size_t leaves_;               // a power of two
  std::vector<std::int64_t> times_;  // node n has children 2n and 2n + 1
};

}  // namespace rrfp
