// Goal: sizes that a file may name, and that once ended the program or asked
// for memory without bounds, are either run or refused by a message.
#include <gtest/gtest.h>

#include <limits>

#include "sim/simulate.h"
#include "tests/core/orders.h"

namespace rrfp {
namespace {

Case unit_case(const Program& program) {
  Case given{.name = "unit", .program = program};
  given.duration_ns.assign(static_cast<std::size_t>(program.task_ids()), 1);
  return given;
}

ProgramSpec chain_spec(int ranks) {
  ProgramSpec spec;
  spec.ranks = ranks;
  spec.microbatches = 1;
  spec.stages = {{0, {}, Backward::kFull}, {ranks - 1, {0}, Backward::kFull}};
  return spec;
}

// The votes of a group are bits of one word; a 65th lane broke an invariant.
TEST(Limits, LanesThatDoNotFitAVoteAreRefused) {
  Case given = unit_case(testing::linear(2, 2));
  given.tensor_parallel.lanes = 64;
  const Result<SimulationResult> most = simulate(given);
  ASSERT_TRUE(most.ok()) << most.error().message;
  EXPECT_TRUE(most->completed);
  given.tensor_parallel.lanes = 65;
  const Result<SimulationResult> refused = simulate(given);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "tensor_parallel lanes is 65; 1 to 64");
}

// Room for queue_depth tasks per rank was made whether or not there are so many.
TEST(Limits, AQueueDeeperThanAllTasksIsAsDeepAsThem) {
  Case given = unit_case(testing::linear(3, 4, true));
  given.dispatch_ns = 5;
  given.queue_depth = 12;
  const SimulationResult all = simulate(given).value();
  given.queue_depth = std::numeric_limits<int>::max();
  const SimulationResult most = simulate(given).value();
  EXPECT_EQ(most.makespan_ns, all.makespan_ns);
  for (std::size_t rank = 0; rank < all.ranks.size(); ++rank) {
    EXPECT_EQ(most.ranks[rank].start_ns, all.ranks[rank].start_ns);
  }
}

// Links are a table of pairs of ranks; their number left 32 bits.
TEST(Limits, MoreRanksThanPairsCanBeListedAreRefused) {
  const Result<Program> most = Program::create(chain_spec(kMostRanks));
  ASSERT_TRUE(most.ok());
  Case given = unit_case(*most);
  given.network.bytes_per_second = 1'000'000'000;
  const Result<SimulationResult> result = simulate(given);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->makespan_ns, 4);

  const Result<Program> refused = Program::create(chain_spec(kMostRanks + 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "ranks is 4097; at least 1, at most 4096");
}

// Numbers of messages left 31 bits on graphs with very many edges.
TEST(Limits, MoreMessagesThanHaveNumbersAreRefused) {
  ProgramSpec spec;
  spec.ranks = 600;
  spec.microbatches = 1'000;
  for (int stage = 0; stage < spec.ranks; ++stage) {
    spec.stages.push_back({stage, {}, Backward::kFull});
    for (int before = 0; before < stage; ++before) {
      spec.stages.back().predecessors.push_back(before);
    }
  }
  const Result<Program> refused = Program::create(spec);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "predecessors times microbatches is too large: 179700000; at most 134217728");
  spec.microbatches = 1;
  EXPECT_TRUE(Program::create(spec).ok());
}

// A case that no reader has seen could overflow 64 bits.
TEST(Limits, TimesThatOverflowAreRefusedInMemoryToo) {
  Case given = unit_case(testing::linear(2, 2));
  given.duration_ns.assign(given.duration_ns.size(), std::numeric_limits<std::int64_t>::max() / 2);
  const Result<SimulationResult> refused = simulate(given);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("too large together"), std::string::npos);
}

}  // namespace
}  // namespace rrfp
