// Who takes part in a run: D replicas of P ranks of T lanes. Each is a worker
// (a thread or a process) and an endpoint of the transport.
#pragma once

#include <string>

namespace rrfp {

struct Place {
  int replica = 0;
  int rank = 0;
  int lane = 0;
};

struct Grid {
  int replicas = 1;
  int ranks = 1;
  int lanes = 1;

  int size() const { return replicas * ranks * lanes; }
  int endpoint(const Place& place) const {
    return (place.replica * ranks + place.rank) * lanes + place.lane;
  }
  Place place(int endpoint) const {
    return {endpoint / (ranks * lanes), endpoint / lanes % ranks, endpoint % lanes};
  }
};

/// "rank 1 lane 0 of replica 2", with no more than tells workers apart.
inline std::string worker_name(const Grid& grid, int endpoint) {
  const Place place = grid.place(endpoint);
  std::string name = "rank " + std::to_string(place.rank);
  if (grid.lanes > 1) name += " lane " + std::to_string(place.lane);
  if (grid.replicas > 1) name += " of replica " + std::to_string(place.replica);
  return name;
}

}  // namespace rrfp
