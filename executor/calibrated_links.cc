#include "executor/calibrated_links.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "traces/saturating.h"

namespace rrfp {

namespace {

constexpr std::int64_t kNsPerUs = 1'000;

// Of the same link of all replicas.
struct Sums {
  std::int64_t count = 0;
  std::int64_t latency_ns = 0;
  double us_per_byte = 0;
};

}  // namespace

std::vector<CalibratedLink> links_of_ranks(std::span<const LinkFigures> links, const Grid& grid) {
  std::map<std::tuple<int, int, int>, Sums> sums;
  for (const LinkFigures& link : links) {
    const Place from = grid.place(link.from);
    const Place to = grid.place(link.to);
    Sums& sum = sums[{from.rank, to.rank, to.lane}];
    ++sum.count;
    sum.latency_ns += link.latency_ns;
    sum.us_per_byte += 1 / static_cast<double>(link.bytes_per_us);
  }
  std::vector<CalibratedLink> of_ranks;
  for (const auto& [key, sum] : sums) {
    const auto [from_rank, to_rank, lane] = key;
    const double bytes_per_us = static_cast<double>(sum.count) / sum.us_per_byte;
    of_ranks.push_back({from_rank, to_rank, grid.lanes == 1 ? CalibratedLink::kAllLanes : lane,
                        sum.latency_ns / sum.count,
                        std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes_per_us + .5))});
  }
  return of_ranks;
}

const CalibratedLink* find_link(std::span<const CalibratedLink> links, int from_rank, int to_rank,
                                int lane) {
  const auto found = std::find_if(links.begin(), links.end(), [&](const CalibratedLink& link) {
    return link.from_rank == from_rank && link.to_rank == to_rank &&
           (link.lane == lane || link.lane == CalibratedLink::kAllLanes);
  });
  return found == links.end() ? nullptr : &*found;
}

std::int64_t link_ns(const CalibratedLink& link, std::int64_t bytes) {
  if (bytes == 0) return 0;
  const std::int64_t copy_ns = (capped_product(bytes, kNsPerUs) - 1) / link.bytes_per_us + 1;
  return capped_sum(link.latency_ns, copy_ns);
}

std::int64_t link_extra_ns(const CalibratedLink& link, std::int64_t bytes, std::int64_t world_ns) {
  return std::max<std::int64_t>(0, link_ns(link, bytes) - world_ns);
}

}  // namespace rrfp
