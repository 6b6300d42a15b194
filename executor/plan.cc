#include "executor/plan.h"

#include <set>

namespace rrfp {

std::vector<std::pair<int, int>> tensor_channels(const RunPlan& plan) {
  const Grid& grid = plan.grid;
  std::set<std::pair<int, int>> channels;
  for (int replica = 0; replica < grid.replicas; ++replica) {
    for (const Edge& edge : plan.world(0, replica).program().edges()) {
      if (edge.local() || !edge.carries) continue;
      for (int lane = 0; lane < grid.lanes; ++lane) {
        channels.insert({grid.endpoint({replica, edge.from_rank, lane}),
                         grid.endpoint({replica, edge.to_rank, lane})});
      }
    }
  }
  return {channels.begin(), channels.end()};
}

std::vector<std::pair<int, int>> pairs_that_talk(const RunPlan& plan) {
  const Grid& grid = plan.grid;
  std::set<std::pair<int, int>> pairs;
  const auto both = [&pairs](int a, int b) {
    if (a == b) return;
    pairs.insert({a, b});
    pairs.insert({b, a});
  };
  for (int endpoint = 1; endpoint < grid.size(); ++endpoint) both(0, endpoint);
  for (int replica = 0; replica < grid.replicas; ++replica) {
    for (const Edge& edge : plan.world(0, replica).program().edges()) {
      for (int lane = 0; lane < grid.lanes; ++lane) {
        both(grid.endpoint({replica, edge.from_rank, lane}),
             grid.endpoint({replica, edge.to_rank, lane}));
      }
    }
    for (int rank = 0; rank < grid.ranks; ++rank) {
      for (int a = 0; a < grid.lanes; ++a) {
        both(grid.endpoint({0, rank, a}), grid.endpoint({replica, rank, a}));
        for (int b = a + 1; b < grid.lanes; ++b) {
          both(grid.endpoint({replica, rank, a}), grid.endpoint({replica, rank, b}));
        }
      }
    }
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace rrfp
