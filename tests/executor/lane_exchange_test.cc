// Goal: every lane gets what all lanes brought, in lane order, round after
// round, and a lane that does not come is an error and no hang.
#include "executor/lane_exchange.h"

#include <gtest/gtest.h>

#include <thread>

#include "executor/job.h"
#include "tests/executor/payloads_for_tests.h"

namespace rrfp {
namespace {

TEST(LaneExchange, GivesAllPartsInLaneOrder) {
  Result<Job> job = Job::open(TransportKind::kThreads);
  ASSERT_TRUE(job.ok());
  constexpr int kLanes = 3;
  const Grid grid{1, 2, kLanes};
  std::vector<std::thread> threads;
  for (int endpoint = 0; endpoint < grid.size(); ++endpoint) {
    const Place place = grid.place(endpoint);
    threads.emplace_back([exchange = job->lane_exchange(grid, place, 10'000'000'000), place] {
      for (int round = 0; round < 500; ++round) {
        const int base = place.rank * 1'000'000 + round * 10;
        const auto all = exchange->exchange(payload_of(base + place.lane));
        ASSERT_TRUE(all.ok()) << all.error().message;
        ASSERT_EQ(all->size(), static_cast<std::size_t>(kLanes));
        for (int lane = 0; lane < kLanes; ++lane) {
          ASSERT_EQ(value_of((*all)[static_cast<std::size_t>(lane)]), base + lane);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LaneExchange, LaneThatDoesNotComeIsAnError) {
  auto group = std::make_shared<ThreadsLaneGroup>(2, 20'000'000);
  ThreadsLaneExchange exchange(group, 1);
  const auto all = exchange.exchange(payload_of(1));
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().message, "lane 1 waited in vain for the other lanes of its group");
}

TEST(LaneExchange, PartsOfDifferentSizesAreAnError) {
  auto group = std::make_shared<ThreadsLaneGroup>(2, 10'000'000'000);
  std::thread other(
      [group] { EXPECT_FALSE(ThreadsLaneExchange(group, 1).exchange(Payload(3)).ok()); });
  EXPECT_FALSE(ThreadsLaneExchange(group, 0).exchange(Payload(4)).ok());
  other.join();
}

// A lane whose run has ended does not keep the others for the patience.
TEST(LaneExchange, ALaneThatLeavesIsNotWaitedFor) {
  auto group = std::make_shared<ThreadsLaneGroup>(2, 60'000'000'000);
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  std::thread leaver([&group] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ThreadsLaneExchange(group, 1).leave();
  });
  ThreadsLaneExchange lane(group, 0);
  for (int round = 0; round < 2; ++round) {  // while it leaves, and after
    const Result<std::vector<Payload>> all = lane.exchange(Payload(1));
    ASSERT_FALSE(all.ok());
    EXPECT_EQ(all.error().message, "lane 0 waited for a lane of its group that has ended");
  }
  leaver.join();
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 30'000'000'000);
}

}  // namespace
}  // namespace rrfp
