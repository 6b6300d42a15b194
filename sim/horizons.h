// How far each rank may be simulated ahead of the others.
//
// What a rank does depends on the others only through messages, and a message
// that is not yet sent arrives no earlier than the sender's next finish plus
// the least latency of the link. So a rank may go through all its events below
// the least of these sums, its horizon, whatever instant the others are at:
// nothing that can still happen elsewhere reaches it before.
//
// The next finish of a rank is bounded below by its floor: the end of the task
// at its front, or, where it may still decide, its next event (or the horizon,
// if that is earlier) plus its shortest task.
//
// Not thread safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace rrfp {

/// A link on which messages travel, and the least latency of them.
struct LinkBound {
  int from_rank = 0;
  int to_rank = 0;
  std::int64_t latency_ns = 0;
};

class Horizons {
 public:
  /// Bounds are cut off here, so that sums of two do not overflow. Beyond it
  /// no rank runs ahead.
  static constexpr std::int64_t kFarNs = std::int64_t{1} << 61;

  /// `links` may name a pair of ranks several times. `shortest_ns[rank]` is
  /// the least time from a decision to the finish of the task.
  Horizons(std::span<const LinkBound> links, std::vector<std::int64_t> shortest_ns);

  /// Whether every message takes time. Where one does not, ranks influence
  /// each other within an instant, and no horizon lies beyond it.
  bool exist() const { return exist_; }

  std::int64_t of(int rank) const {
    const auto index = static_cast<std::size_t>(rank);
    std::int64_t least_ns = kFarNs;
    for (std::uint32_t i = first_[index]; i < first_[index + 1]; ++i) {
      least_ns = std::min(least_ns, floor_ns_[inputs_[i].from_rank] + inputs_[i].latency_ns);
    }
    return least_ns;
  }

  /// The rank finishes nothing before `floor_ns`.
  void set_floor(int rank, std::int64_t floor_ns) {
    floor_ns_[static_cast<std::size_t>(rank)] = std::min(floor_ns, kFarNs);
  }
  /// The rank decides nothing before `decides_ns`, which is at most kFarNs, and
  /// finishes nothing it holds already before `finish_ns`.
  void set_floor_of_idle(int rank, std::int64_t decides_ns, std::int64_t finish_ns) {
    set_floor(rank, std::min(finish_ns, decides_ns + shortest_ns_[static_cast<std::size_t>(rank)]));
  }

 private:
  struct Input {
    std::size_t from_rank = 0;
    std::int64_t latency_ns = 0;
  };

  bool exist_ = true;
  std::vector<std::uint32_t> first_;  // by rank, and one more: in inputs_
  std::vector<Input> inputs_;
  std::vector<std::int64_t> shortest_ns_;
  std::vector<std::int64_t> floor_ns_;
};

}  // namespace rrfp
