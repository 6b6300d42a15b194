#include "sim/horizons.h"

#include <map>
#include <utility>

namespace rrfp {

Horizons::Horizons(std::span<const LinkBound> links, std::vector<std::int64_t> shortest_ns)
    : shortest_ns_(std::move(shortest_ns)), floor_ns_(shortest_ns_.size(), 0) {
  std::map<std::pair<int, int>, std::int64_t> least;  // by receiver and sender
  for (const LinkBound& link : links) {
    const auto [place, added] = least.try_emplace({link.to_rank, link.from_rank}, kFarNs);
    place->second = std::min(place->second, link.latency_ns);
    exist_ = exist_ && link.latency_ns > 0;
  }
  for (int rank = 0; rank < static_cast<int>(shortest_ns_.size()); ++rank) {
    first_.push_back(static_cast<std::uint32_t>(inputs_.size()));
    for (auto link = least.lower_bound({rank, 0}); link != least.end() && link->first.first == rank;
         ++link) {
      inputs_.push_back({static_cast<std::size_t>(link->first.second), link->second});
    }
  }
  first_.push_back(static_cast<std::uint32_t>(inputs_.size()));
  for (std::int64_t& shortest : shortest_ns_) shortest = std::min(shortest, kFarNs);
}

}  // namespace rrfp
