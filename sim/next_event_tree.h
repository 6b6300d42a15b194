// The next event of each rank in a tournament tree: one pending time per
// rank, the least at the root together with the rank whose it is. Keeping the
// rank in every node saves a walk down to the leaf, each step of which waits
// for the one before it.
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
  static constexpr int kSeveral = -1;

  explicit NextEventTree(int ranks)
      : leaves_(std::bit_ceil(static_cast<std::size_t>(std::max(ranks, 2)))), nodes_(2 * leaves_) {}

  void reset() { std::fill(nodes_.begin(), nodes_.end(), Node{}); }

  std::int64_t least() const { return nodes_[1].time_ns; }
  std::int64_t at(int rank) const { return nodes_[leaf(rank)].time_ns; }

  void set(int rank, std::int64_t time_ns) {
    Node* const nodes = nodes_.data();
    std::size_t node = leaf(rank);
    std::int64_t winner = rank;
    nodes[node] = {time_ns, winner};
    while (node > 1) {
      // Masks, not conditions: which side wins is as good as random, compilers
      // make branches of it, and three of them a task then go wrong.
      const std::int64_t other_ns = nodes[node ^ 1].time_ns;
      const std::int64_t other = nodes[node ^ 1].rank;
      const std::int64_t loses = -static_cast<std::int64_t>(other_ns < time_ns);
      const std::int64_t ties = -static_cast<std::int64_t>(other_ns == time_ns);
      winner = (winner ^ ((winner ^ other) & loses)) | ties;
      time_ns = std::min(time_ns, other_ns);
      node /= 2;
      nodes[node].time_ns = time_ns;
      nodes[node].rank = winner;
    }
  }

  /// The one rank whose time is least(), or kSeveral.
  /// REQUIRES: least() != kNever.
  int only_least() const { return static_cast<int>(nodes_[1].rank); }

  /// Calls `visit(rank)` for each rank whose time is least(), ascending.
  /// REQUIRES: least() != kNever.
  template <typename Visit>
  void each_least(const Visit& visit) const {
    walk(1, least(), visit);
  }

 private:
  struct Node {
    std::int64_t time_ns = kNever;
    std::int64_t rank = kSeveral;  // all bits set where there are several
  };

  std::size_t leaf(int rank) const { return leaves_ + static_cast<std::size_t>(rank); }

  template <typename Visit>
  void walk(std::size_t node, std::int64_t time_ns, const Visit& visit) const {
    while (node < leaves_) {
      const bool left = nodes_[2 * node].time_ns == time_ns;
      if (left && nodes_[2 * node + 1].time_ns == time_ns) {
        walk(2 * node, time_ns, visit);
        node = 2 * node + 1;
      } else {
        node = 2 * node + (left ? 0 : 1);
      }
    }
    visit(static_cast<int>(node - leaves_));
  }

  std::size_t leaves_;       // a power of two
  std::vector<Node> nodes_;  // node n has children 2n and 2n + 1
};

}  // namespace rrfp
