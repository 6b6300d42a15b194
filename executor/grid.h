// Who takes part in a run: D replicas of P ranks of T lanes. Each is a worker
// (a thread or a process) and an endpoint of the transport.
#pragma once

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

}  // namespace rrfp
