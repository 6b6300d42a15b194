#include "executor/plan.h"

#include <map>
#include <set>

namespace rrfp {

namespace {

// Each goes to the first round in which both of its endpoints are free.
std::vector<std::pair<int, int>> in_rounds(const std::set<std::pair<int, int>>& channels) {
  std::map<int, std::set<std::size_t>> rounds_of;  // by endpoint
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (const auto& [from, to] : channels) {
    std::size_t round = 0;
    while (rounds_of[from].count(round) + rounds_of[to].count(round) > 0) ++round;
    rounds_of[from].insert(round);
    rounds_of[to].insert(round);
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back({from, to});
  }
  std::vector<std::pair<int, int>> all;
  for (const auto& round : rounds) all.insert(all.end(), round.begin(), round.end());
  return all;
}

}  // namespace

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
  return in_rounds(channels);
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
