// Goal: what every process works out about a run for itself is what it should
// be: channels of tensors, in an order that connects all of them side by side.
#include "executor/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/executor/runs_for_tests.h"

namespace rrfp {
namespace {

// How many channels are opened one after the other, where every process opens its own in the order
// of the list and waits for its peer.
int longest_wait(const std::vector<std::pair<int, int>>& channels) {
  std::map<int, int> done;
  int longest = 0;
  for (const auto& [from, to] : channels) {
    const int after = std::max(done[from], done[to]) + 1;
    done[from] = done[to] = after;
    longest = std::max(longest, after);
  }
  return longest;
}

TEST(Plan, ChannelsOfALongChainConnectSideBySide) {
  TestRun run;
  Case input = chain_case(64, 1, false, 1'000);
  input.tensor_parallel.lanes = 2;
  run.prepare(input);
  const std::vector<std::pair<int, int>> channels = tensor_channels(*run.plan);
  EXPECT_EQ(channels.size(), 63U * 2 * 2);
  EXPECT_EQ(longest_wait(channels), 4);
  const std::set<std::pair<int, int>> unique(channels.begin(), channels.end());
  EXPECT_EQ(unique.size(), channels.size());
  for (const auto& [from, to] : channels) {
    // Between neighbouring ranks, lane by lane.
    EXPECT_EQ(std::abs(from - to), 2);
    EXPECT_TRUE(unique.count({to, from}));
  }
}

TEST(Plan, OneRankHasNoChannels) {
  TestRun run;
  run.prepare(chain_case(1, 2, true, 1'000));
  EXPECT_TRUE(tensor_channels(*run.plan).empty());
}

}  // namespace
}  // namespace rrfp
