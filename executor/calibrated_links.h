// How fast a machine's own links are, by ranks, and what that adds to the
// messages of a world.
//
// The executor lets a message arrive when the world has it arrive, or when its
// tensor has been copied, whichever is later: a world that is slower than the
// link hides the link. So of a message of `bytes` along a link
//   extra_ns = max(0, latency_ns + bytes / bytes_per_us - world_ns)
// where world_ns is transmission and latency as the world has them. A message
// that has to wait until the world's link is free is copied meanwhile, and one
// that is copied while another is, more slowly; the formula sees neither.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/device_figures.h"
#include "executor/grid.h"

namespace rrfp {

struct CalibratedLink {
  static constexpr int kAllLanes = -1;

  int from_rank = 0;
  int to_rank = 0;
  int lane = kAllLanes;
  std::int64_t latency_ns = 0;
  std::int64_t bytes_per_us = 1;

  friend bool operator==(const CalibratedLink&, const CalibratedLink&) = default;
};

/// What was measured between endpoints, as the mean over replicas, by ranks and
/// lane; a group of one lane has links for all lanes.
std::vector<CalibratedLink> links_of_ranks(std::span<const LinkFigures> links, const Grid& grid);

/// Null: it was not measured.
const CalibratedLink* find_link(std::span<const CalibratedLink> links, int from_rank, int to_rank,
                                int lane);

/// From the moment at which a tensor is there, rounded up; 0 of no bytes, which
/// nothing copies.
std::int64_t link_ns(const CalibratedLink& link, std::int64_t bytes);

/// extra_ns of the formula above.
std::int64_t link_extra_ns(const CalibratedLink& link, std::int64_t bytes, std::int64_t world_ns);

}  // namespace rrfp
