// Goal: no allocation after construction in RankScheduler, nor in
// EagerEngine::run() once a first run has sized its buffers, so that the memory
// of a sweep is flat however many iterations it takes.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "sim/eager_engine.h"
#include "tests/core/orders.h"
#include "tests/count_allocations.h"

namespace rrfp {
namespace {

Case chain_case(int ranks, int microbatches) {
  Case given{.name = "allocations", .program = testing::linear(ranks, microbatches, true)};
  for (int id = 0; id < given.program.task_ids(); ++id) {
    given.duration_ns.push_back(1000 + id * 7919 % 1000);
  }
  const auto count = static_cast<std::size_t>(microbatches);
  for (std::size_t edge = 0; edge < given.program.edges().size(); ++edge) {
    given.network.latency_ns.emplace_back(count, 10 + static_cast<std::int64_t>(edge));
  }
  given.memory.activation_bytes.assign(static_cast<std::size_t>(ranks) * count, 1);
  given.memory.budget_bytes.assign(static_cast<std::size_t>(ranks), 2 * ranks);
  given.policy.hint.name = "bfw";
  return given;
}

void expect_flat(const Case& given) {
  const auto prepared = PreparedCase::create(given);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  EagerEngine engine(**prepared, {});
  engine.run();
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(allocations_of([&] { engine.run(); }), 0) << "in a later run";
  }
  EXPECT_TRUE(engine.completed());
}

// Without this, a counter that never counts would pass everything.
TEST(Allocations, AreCounted) {
  RRFP_NEEDS_COUNTED_ALLOCATIONS();
  EXPECT_GE(allocations_of([] { std::vector<std::int64_t>(1000).front() = 1; }), 1);
  const Case given = chain_case(4, 8);
  EXPECT_GE(allocations_of([&] { (void)PreparedCase::create(given); }), 1);
}

TEST(Allocations, NoneInALaterRunOfTheEngine) {
  RRFP_NEEDS_COUNTED_ALLOCATIONS();
  expect_flat(chain_case(8, 64));
}

TEST(Allocations, NoneWithAnticipation) {
  RRFP_NEEDS_COUNTED_ALLOCATIONS();
  Case given = chain_case(8, 64);
  given.policy.hint.name = "zb-h2";
  given.policy.anticipation = Anticipation{750, 500};
  expect_flat(given);
}

TEST(Allocations, NoneWithBandwidthAndAQueue) {
  RRFP_NEEDS_COUNTED_ALLOCATIONS();
  Case given = chain_case(4, 16);
  given.network.bytes_per_second = 1'000'000'000;
  given.network.message_bytes.assign(static_cast<std::size_t>(given.program.task_ids()), 100);
  given.queue_depth = 2;
  expect_flat(given);
}

TEST(Allocations, NoneInRankSchedulerAfterConstruction) {
  RRFP_NEEDS_COUNTED_ALLOCATIONS();
  Case given = chain_case(4, 16);
  given.policy.anticipation = Anticipation{750, 500};
  const auto prepared = PreparedCase::create(given);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  const Program& program = (*prepared)->program();
  constexpr int kRank = 1;
  RankScheduler scheduler(program, (*prepared)->schedule(), (*prepared)->scheduler_config(kRank));
  const std::int64_t count = allocations_of([&] {
    for (int m = 0; m < program.microbatches(); ++m) {
      const TaskId forward = program.task_id(kRank, Slot::kForward, m);
      scheduler.on_notice(forward, kRank - 1, 10 * m);
      scheduler.on_input(forward, kRank - 1);
      scheduler.on_input(program.task_id(kRank, Slot::kBackward, m), kRank + 1);
      // All three tasks of the microbatch, in whatever order the hint says.
      for (Decision decision = scheduler.decide(m); decision.action == Decision::Action::kStart;
           decision = scheduler.decide(m)) {
        scheduler.on_finished(decision.task, m);
      }
    }
  });
  EXPECT_EQ(count, 0);
  EXPECT_TRUE(scheduler.finished());
}

}  // namespace
}  // namespace rrfp
