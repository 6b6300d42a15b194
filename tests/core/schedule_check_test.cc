// Goal: a schedule that cannot run is refused before it runs, and the message
// names the tasks, ranks and bytes.
#include "scheduler_core/schedule_check.h"

#include <gtest/gtest.h>

#include "scheduler_core/random.h"
#include "tests/core/orders.h"

namespace rrfp {
namespace {

using testing::linear;
using testing::looped;
using testing::make;
using testing::runs_in_order;

using Budgets = std::vector<std::optional<std::int64_t>>;
using Bytes = std::vector<std::int64_t>;

Schedule parse(const std::vector<std::vector<std::string>>& ranks) {
  Schedule schedule;
  for (const std::vector<std::string>& line : ranks) {
    schedule.ranks.emplace_back();
    for (const std::string& word : line) schedule.ranks.back().push_back(parse_task(word).value());
  }
  return schedule;
}

std::string deadlock(const Program& program, const Schedule& schedule) {
  const Result<Program> fitted = fit_program(program, schedule);
  EXPECT_TRUE(fitted.ok()) << fitted.error().message;
  const Result<void> checked = check_fixed_order(*fitted, schedule);
  return checked.ok() ? "" : checked.error().message;
}

TEST(FixedOrder, CycleOverTwoRanks) {
  EXPECT_EQ(
      deadlock(linear(2, 2), parse({{"0F0", "0B0", "0F1", "0B1"}, {"1F0", "1F1", "1B0", "1B1"}})),
      "the fixed order deadlocks: 0B0 (rank 0) waits for a gradient from 1B0 (rank 1), which "
      "stands behind 1F1 (rank 1), which waits for an activation from 0F1 (rank 0), which "
      "stands behind 0B0 (rank 0)");
}

TEST(FixedOrder, CycleOnOneRank) {
  EXPECT_EQ(deadlock(linear(1, 1), parse({{"0B0", "0F0"}})),
            "the fixed order deadlocks: 0B0 (rank 0) waits for its own forward 0F0 (rank 0), which "
            "stands behind 0B0 (rank 0)");
  EXPECT_EQ(deadlock(linear(1, 1, true), parse({{"0F0", "0W0", "0I0"}})),
            "the fixed order deadlocks: 0W0 (rank 0) waits for its own input gradient 0I0 (rank "
            "0), which stands behind 0W0 (rank 0)");
}

// A rank that only waits for a deadlocked one is not part of the cycle.
TEST(FixedOrder, OnlyTheCycleIsNamed) {
  const std::string message =
      deadlock(linear(3, 1), parse({{"0F0", "0B0"}, {"1B0", "1F0"}, {"2F0", "2B0"}}));
  EXPECT_EQ(message,
            "the fixed order deadlocks: 1B0 (rank 1) waits for its own forward 1F0 (rank 1), which "
            "stands behind 1B0 (rank 1)");
}

TEST(FixedOrder, RanksThatOnlyWaitForTheCycleAreLeftOut) {
  // 0B0 waits for 1B0, which waits for 2B0, behind 2F1; that for 1F1, behind 1B0.
  EXPECT_EQ(deadlock(linear(3, 2), parse({{"0F0", "0F1", "0B0", "0B1"},
                                          {"1F0", "1B0", "1F1", "1B1"},
                                          {"2F0", "2F1", "2B0", "2B1"}})),
            "the fixed order deadlocks: 1B0 (rank 1) waits for a gradient from 2B0 (rank 2), which "
            "stands behind 2F1 (rank 2), which waits for an activation from 1F1 (rank 1), which "
            "stands behind 1B0 (rank 1)");
}

TEST(FixedOrder, OrderedAccumulation) {
  ProgramSpec spec = linear(1, 2).spec();
  const Schedule reversed = parse({{"0F0", "0F1", "0B1", "0B0"}});
  EXPECT_EQ(deadlock(Program::create(spec).value(), reversed), "");
  spec.ordered_accumulation = true;
  EXPECT_NE(deadlock(Program::create(spec).value(), reversed)
                .find("0B1 (rank 0) waits for the accumulation before it, 0B0 (rank 0)"),
            std::string::npos);
  // Breadth first runs its backwards in reverse, so it cannot accumulate in order.
  spec = looped(2, 2, 3).spec();
  spec.ordered_accumulation = true;
  const Program program = Program::create(spec).value();
  EXPECT_NE(deadlock(program, *make("looped-bfs", program)).find("the accumulation before it"),
            std::string::npos);
}

// The one-chunk schedules accumulate in order anyway.
TEST(FixedOrder, OrderedAccumulationBlocksNoOneChunkSchedule) {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 8; ++m) {
      ProgramSpec spec = linear(p, m, true).spec();
      spec.ordered_accumulation = true;
      const Program program = Program::create(spec).value();
      for (const char* name : {"gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "critical-path"}) {
        EXPECT_EQ(deadlock(program, *make(name, program)), "") << name << " " << p << " " << m;
      }
    }
  }
}

TEST(FixedOrder, FusedBackwardsCount) {
  // Split, but rank 0 fuses microbatch 0: ordered accumulation then chains
  // 0B0 -> 0W1.
  ProgramSpec spec = linear(1, 2, true).spec();
  spec.ordered_accumulation = true;
  const Program program = Program::create(spec).value();
  EXPECT_EQ(deadlock(program, parse({{"0F0", "0F1", "0I1", "0B0", "0W1"}})), "");
  EXPECT_NE(deadlock(program, parse({{"0F0", "0F1", "0I1", "0W1", "0B0"}})), "");
}

TEST(FixedOrder, LongCyclesAreCutShort) {
  // A ring of waits over 40 ranks: gradients down the chain, and from its end
  // back to its start along an edge of its own.
  ProgramSpec spec = linear(40, 2).spec();
  spec.stages[39].predecessors = {0, 38};
  std::vector<std::vector<std::string>> ranks;
  for (int rank = 0; rank < 40; ++rank) {
    const std::string s = std::to_string(rank);
    ranks.push_back({s + "F0", s + "B0", s + "F1", s + "B1"});
  }
  std::swap(ranks[39][1], ranks[39][2]);
  const std::string message = deadlock(Program::create(spec).value(), parse(ranks));
  // Each of them is the head of its rank, so it stands behind nothing.
  EXPECT_EQ(message.rfind("the fixed order deadlocks: 0B0 (rank 0) waits for a gradient from 1B0 "
                          "(rank 1), which waits for a gradient from 2B0 (rank 2), which waits for",
                          0),
            0u)
      << message;
  EXPECT_NE(message.find(", and so on over 24 more ranks, back to 0B0 (rank 0)"), std::string::npos)
      << message;
  EXPECT_LT(message.size(), 2000u);
}

// Random orders of random programs: the verdict is that of a plain executor.
TEST(FixedOrder, AgreesWithRunningIt) {
  int blocked = 0;
  int ran = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    RandomStream draw({seed, 0, 2, 0});
    const auto below = [&draw](int bound) {
      return static_cast<int>(draw.below(static_cast<std::uint64_t>(bound)));
    };
    ProgramSpec spec;
    spec.ranks = 1 + below(4);
    spec.microbatches = 1 + below(4);
    spec.split_backward = below(2) == 0;
    const int stages = 1 + below(5);
    for (int stage = 0; stage < stages; ++stage) {
      StageSpec self;
      self.rank = below(spec.ranks);
      for (int before = 0; before < stage; ++before) {
        if (below(2) == 0) self.predecessors.push_back(before);
      }
      spec.stages.push_back(self);
    }
    const Program program = Program::create(spec).value();
    // An order that runs, with a few neighbours swapped.
    Schedule schedule = make("critical-path", program).value();
    for (std::vector<Task>& order : schedule.ranks) {
      for (int swaps = below(3); swaps > 0 && order.size() > 1; --swaps) {
        const auto at = static_cast<std::size_t>(below(static_cast<int>(order.size()) - 1));
        std::swap(order[at], order[at + 1]);
      }
    }
    const bool runs = runs_in_order(program, schedule);
    ++(runs ? ran : blocked);
    EXPECT_EQ(deadlock(program, schedule).empty(), runs) << "seed " << seed;
  }
  EXPECT_GT(blocked, 300);
  EXPECT_GT(ran, 300);
}

TEST(Budgets, BelowTheLeast) {
  const Program program = looped(2, 2, 2);
  const Bytes bytes = {5, 7, 1, 1, 3, 2, 1, 1};  // tokens 7, 1, 3, 1
  EXPECT_TRUE(check_budgets(program, bytes, Budgets{10, 2}).ok());
  EXPECT_TRUE(check_budgets(program, bytes, Budgets{std::nullopt, 2}).ok());
  EXPECT_TRUE(check_budgets(program, bytes, {}).ok());
  const Result<void> low = check_budgets(program, bytes, Budgets{9, 2});
  ASSERT_FALSE(low.ok());
  EXPECT_EQ(low.error().message,
            "rank 0: budget_bytes is 9; the least that works is 10 (the largest activation of each "
            "of its stages, summed)");
  EXPECT_FALSE(check_budgets(program, bytes, Budgets{10, 1}).ok());
  EXPECT_FALSE(check_budgets(program, bytes, Budgets{10}).ok());
}

TEST(FixedMemory, PeaksDecide) {
  const auto verdict = [](const char* name, bool split, const Budgets& budgets) {
    const Program program = linear(4, 8, split);
    const Bytes bytes(static_cast<std::size_t>(4 * 8), 1);
    const MemoryModel memory{bytes, {}};
    return check_fixed_memory(program, *make(name, program), memory, budgets);
  };
  EXPECT_TRUE(verdict("1f1b", false, Budgets{4, 3, 2, 1}).ok());
  EXPECT_TRUE(verdict("eager-1f1b", false, Budgets{7, 5, 3, 1}).ok());
  EXPECT_TRUE(verdict("zb-h2", true, Budgets{7, 7, 7, 7}).ok());
  EXPECT_FALSE(verdict("zb-h2", true, Budgets{7, 7, 7, 6}).ok());
  EXPECT_FALSE(verdict("eager-1f1b", false, Budgets{7, 4, 3, 1}).ok());
  const Result<void> low = verdict("1f1b", false, Budgets{4, 2, 2, 1});
  ASSERT_FALSE(low.ok());
  EXPECT_EQ(low.error().message,
            "order of rank 1: 1F2 at position 2 can never start: it takes 1, what ran before "
            "it holds 2, and the budget is 2");
}

TEST(FixedMemory, StashAndFrozenStagesFreeEarly) {
  ProgramSpec spec = linear(1, 2, true).spec();
  const Schedule schedule = parse({{"0F0", "0I0", "0F1", "0I1", "0W0", "0W1"}});
  const Bytes bytes = {10, 10};
  const Bytes stash = {4, 4};
  const MemoryModel memory{bytes, stash};
  const Program split = Program::create(spec).value();
  EXPECT_TRUE(check_fixed_memory(split, schedule, memory, Budgets{14}).ok());
  EXPECT_FALSE(check_fixed_memory(split, schedule, memory, Budgets{13}).ok());
  spec.stages[0].backward = Backward::kNone;
  const Program frozen = Program::create(spec).value();
  EXPECT_TRUE(check_fixed_memory(frozen, parse({{"0F0", "0F1"}}), memory, Budgets{10}).ok());
}

}  // namespace
}  // namespace rrfp
