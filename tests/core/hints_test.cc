// Goal: the hints that work on any program rank its tasks as they say, on any
// graph and placement.
#include <gtest/gtest.h>

#include <tuple>

#include "scheduler_core/random.h"
#include "scheduler_core/schedule.h"
#include "scheduler_core/schedule_check.h"
#include "tests/core/orders.h"

namespace rrfp {
namespace {

using testing::linear;
using testing::looped;
using testing::make;
using testing::runs_in_order;
using testing::text;

TEST(Hints, ByKind) {
  const Program program = looped(1, 2, 2, true);
  EXPECT_EQ(text(make("bfw", program)->ranks[0]),
            "0I0 1I0 0I1 1I1 1F0 0F0 1F1 0F1 0W0 1W0 0W1 1W1");
  EXPECT_EQ(make("bf", program)->ranks, make("bfw", program)->ranks);
  EXPECT_EQ(text(make("fbw", program)->ranks[0]),
            "1F0 0F0 1F1 0F1 0I0 1I0 0I1 1I1 0W0 1W0 0W1 1W1");
  EXPECT_EQ(text(make("bf", linear(1, 2))->ranks[0]), "0B0 0B1 0F0 0F1");
}

// Two ranks, F 1 and B 2 for microbatch 0, three times that for microbatch 1.
TEST(Hints, CriticalPathCountsTransfers) {
  const Program program = linear(2, 2);
  std::vector<std::int64_t> expected_ns(static_cast<std::size_t>(program.task_ids()));
  const auto at = [&](int stage, Slot slot, int microbatch) -> std::int64_t& {
    return expected_ns[static_cast<std::size_t>(program.task_id(stage, slot, microbatch))];
  };
  for (const int stage : {0, 1}) {
    for (const int microbatch : {0, 1}) {
      at(stage, Slot::kForward, microbatch) = microbatch == 0 ? 1 : 3;
      at(stage, Slot::kBackward, microbatch) = microbatch == 0 ? 2 : 6;
    }
  }
  HintSpec hint;
  hint.name = "critical-path";
  ScheduleContext context;
  context.expected_ns = expected_ns;
  // Ahead of 0F1 are 3 + 3 + 6 + 6 = 18, of 0F0 6, of 0B1 6, of 0B0 2. Of 0F0
  // and 0B1 (equal times) 0F0 has more tasks behind it.
  EXPECT_EQ(text(make_schedule(hint, program, context)->ranks[0]), "0F1 0F0 0B1 0B0");
  EXPECT_EQ(text(make_schedule(hint, program, context)->ranks[1]), "1F1 1B1 1F0 1B0");
  at(0, Slot::kBackward, 1) = 7;
  EXPECT_EQ(text(make_schedule(hint, program, context)->ranks[0]), "0F1 0B1 0F0 0B0");
  // A transfer of 2 lifts 0F0 from 6 to 8, be it an activation or a gradient.
  for (const auto& [kind, from, to] : {std::tuple{Kind::kForward, 0, 1}, {Kind::kBackward, 1, 0}}) {
    std::vector<std::int64_t> transfer_ns(program.edges().size(), 0);
    transfer_ns[static_cast<std::size_t>(program.find_edge(kind, from, to))] = 2;
    context.expected_transfer_ns = transfer_ns;
    EXPECT_EQ(text(make_schedule(hint, program, context)->ranks[0]), "0F1 0F0 0B1 0B0");
  }
}

// An ordered accumulation waits for the W before it, not for its I.
TEST(Hints, CriticalPathFollowsOrderedAccumulation) {
  ProgramSpec spec = linear(1, 2, true).spec();
  spec.ordered_accumulation = true;
  const Program program = Program::create(spec).value();
  std::vector<std::int64_t> expected_ns = {1, 1, 1, 100, 1, 1};  // F, I, W of microbatches 0, 1
  HintSpec hint;
  hint.name = "critical-path";
  ScheduleContext context;
  context.expected_ns = expected_ns;
  EXPECT_EQ(text(make_schedule(hint, program, context)->ranks[0]), "0F1 0I1 0F0 0I0 0W0 0W1");
  expected_ns = {1, 1, 1, 1, 1, 100};  // now W1 is long, and W0 before it
  EXPECT_EQ(text(make_schedule(hint, program, context)->ranks[0]), "0F0 0I0 0F1 0I1 0W0 0W1");
}

TEST(Hints, CriticalPathRefusesATableThatDoesNotFit) {
  const std::vector<std::int64_t> short_table(3);
  HintSpec hint;
  hint.name = "critical-path";
  ScheduleContext context;
  context.expected_ns = short_table;
  const Result<Schedule> schedule = make_schedule(hint, linear(2, 2), context);
  ASSERT_FALSE(schedule.ok());
  EXPECT_NE(schedule.error().message.find("has 3 entries"), std::string::npos);
}

TEST(Hints, RandomIsAShuffleBySeed) {
  const Program program = looped(2, 2, 8, true);
  const auto shuffled = [&](std::uint64_t seed) {
    HintSpec hint;
    hint.name = "random";
    hint.seed = seed;
    return make_schedule(hint, program).value();
  };
  EXPECT_EQ(shuffled(1), shuffled(1));
  EXPECT_NE(shuffled(1), shuffled(2));
  EXPECT_TRUE(fit_program(program, shuffled(3)).ok());
  // Every task comes first about as often as any other: 16 forwards, 32
  // others, 4800 shuffles, so 100 each.
  std::map<Task, int> first;
  for (std::uint64_t seed = 0; seed < 4800; ++seed) ++first[shuffled(seed).ranks[0][0]];
  EXPECT_EQ(first.size(), 48u);
  for (const auto& [task, count] : first) EXPECT_NEAR(count, 100, 50) << to_string(task);
}

// Any DAG, placement, frozen stages, split or not: complete, and (critical
// path) an order that runs even where tasks take no time.
TEST(Hints, AnyProgram) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    RandomStream draw({seed, 0, 1, 0});
    const auto below = [&draw](int bound) {
      return static_cast<int>(draw.below(static_cast<std::uint64_t>(bound)));
    };
    ProgramSpec spec;
    spec.ranks = 1 + below(5);
    spec.microbatches = 1 + below(6);
    spec.split_backward = below(2) == 0;
    spec.ordered_accumulation = below(2) == 0;
    const int stages = 1 + below(9);
    for (int stage = 0; stage < stages; ++stage) {
      StageSpec self;
      self.rank = below(spec.ranks);
      bool frozen = true;
      for (int before = 0; before < stage; ++before) {
        if (below(3) != 0) continue;
        self.predecessors.push_back(before);
        frozen =
            frozen && spec.stages[static_cast<std::size_t>(before)].backward == Backward::kNone;
      }
      self.backward = frozen && below(4) == 0 ? Backward::kNone
                      : below(4) == 0         ? Backward::kInput
                                              : Backward::kFull;
      spec.stages.push_back(self);
    }
    const Program program = Program::create(spec).value();
    std::vector<std::int64_t> expected_ns(static_cast<std::size_t>(program.task_ids()));
    for (std::int64_t& ns : expected_ns) ns = below(3);
    ScheduleContext context;
    context.expected_ns = expected_ns;
    for (const char* name : {"bf", "bfw", "fbw", "critical-path", "random"}) {
      HintSpec hint;
      hint.name = name;
      const Result<Schedule> schedule = make_schedule(hint, program, context);
      ASSERT_TRUE(schedule.ok()) << "seed " << seed << ": " << schedule.error().message;
      const Result<Program> fitted = fit_program(program, *schedule);
      ASSERT_TRUE(fitted.ok()) << "seed " << seed << ": " << fitted.error().message;
      if (hint.name == "critical-path") {
        EXPECT_TRUE(runs_in_order(program, *schedule)) << "seed " << seed;
        EXPECT_TRUE(check_fixed_order(program, *schedule).ok()) << "seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace rrfp
