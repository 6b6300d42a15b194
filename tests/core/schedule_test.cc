// Goal: every named schedule is exactly the published order: the order strings
// by hand, the warm-up and memory that the papers state, each task once, and
// no order that blocks itself.
#include "scheduler_core/schedule.h"

#include <gtest/gtest.h>

#include "tests/core/orders.h"

namespace rrfp {
namespace {

using testing::linear;
using testing::looped;
using testing::make;
using testing::peak_in_flight;
using testing::runs_in_order;
using testing::text;
using testing::v_shaped;

std::vector<std::string> orders(const std::string& name, const Program& program, int group = 0) {
  std::vector<std::string> lines;
  const Result<Schedule> schedule = make(name, program, group);
  EXPECT_TRUE(schedule.ok()) << schedule.error().message;
  for (const std::vector<Task>& order : schedule->ranks) lines.push_back(text(order));
  return lines;
}

std::vector<int> peaks(const std::string& name, const Program& program) {
  std::vector<int> peaks;
  const Result<Schedule> schedule = make(name, program);
  EXPECT_TRUE(schedule.ok()) << schedule.error().message;
  for (const std::vector<Task>& order : schedule->ranks) peaks.push_back(peak_in_flight(order));
  return peaks;
}

std::string error_of(const std::string& name, const Program& program, int group = 0) {
  const Result<Schedule> schedule = make(name, program, group);
  return schedule.ok() ? "" : schedule.error().message;
}

using Lines = std::vector<std::string>;
using Ints = std::vector<int>;

TEST(Schedule, OneChunkOrders) {
  EXPECT_EQ(orders("gpipe", linear(2, 2)), (Lines{"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1"}));
  EXPECT_EQ(orders("1f1b", linear(2, 4)),
            (Lines{"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"}));
  EXPECT_EQ(orders("eager-1f1b", linear(2, 4)),
            (Lines{"0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"}));
  EXPECT_EQ(orders("zb-h1", linear(2, 3, true)),
            (Lines{"0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2", "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"}));
  EXPECT_EQ(orders("zb-h2", linear(2, 4, true)),
            (Lines{"0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3",
                   "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3"}));
}

TEST(Schedule, AParameterThatWouldChangeNothingIsAnError) {
  EXPECT_EQ(error_of("zb-h1", linear(2, 4, true), 2),
            "schedule zb-h1 takes no group; only interleaved-1f1b does");
  HintSpec hint;
  hint.name = "bf";
  hint.seed = 1;
  const Result<Schedule> schedule = make_schedule(hint, linear(2, 4));
  ASSERT_FALSE(schedule.ok());
  EXPECT_EQ(schedule.error().message, "schedule bf takes no seed; only random does");
  EXPECT_EQ(error_of("interleaved-1f1b", looped(2, 2, 4), 2), "");
}

TEST(Schedule, FewerMicrobatchesThanWarmUp) {
  EXPECT_EQ(orders("1f1b", linear(4, 2))[0], "0F0 0F1 0B0 0B1");
  EXPECT_EQ(
      orders("zb-h2", linear(3, 2, true)),
      (Lines{"0F0 0F1 0I0 0W0 0I1 0W1", "1F0 1F1 1I0 1I1 1W0 1W1", "2F0 2I0 2F1 2I1 2W0 2W1"}));
}

TEST(Schedule, SplitProgramsPutWBehindItsI) {
  EXPECT_EQ(orders("gpipe", linear(1, 2, true))[0], "0F0 0F1 0I0 0W0 0I1 0W1");
  EXPECT_EQ(orders("1f1b", linear(2, 2, true)),
            (Lines{"0F0 0F1 0I0 0W0 0I1 0W1", "1F0 1I0 1W0 1F1 1I1 1W1"}));
  EXPECT_EQ(orders("eager-1f1b", linear(2, 2, true))[1], "1F0 1I0 1W0 1F1 1I1 1W1");
}

// The table of peaks for 4 ranks.
TEST(Schedule, PeakActivationsOfFourRanks) {
  for (const int m : {8, 12, 24}) {
    EXPECT_EQ(peaks("gpipe", linear(4, m)), (Ints{m, m, m, m}));
    EXPECT_EQ(peaks("1f1b", linear(4, m)), (Ints{4, 3, 2, 1}));
    EXPECT_EQ(peaks("eager-1f1b", linear(4, m)), (Ints{7, 5, 3, 1}));
    EXPECT_EQ(peaks("zb-h1", linear(4, m, true)), (Ints{4, 4, 4, 4}));
    EXPECT_EQ(peaks("zb-h2", linear(4, m, true)), (Ints{7, 7, 7, 7}));
    EXPECT_EQ(peaks("interleaved-1f1b", looped(4, 2, m)), (Ints{11, 9, 7, 5}));
    EXPECT_EQ(peaks("zb-v", v_shaped(4, m)), (Ints{8, 8, 8, 8}));
  }
}

TEST(Schedule, PeakActivationsInClosedForm) {
  for (const auto& [p, m] : {std::pair{4, 8}, {8, 16}, {8, 32}}) {
    for (int r = 0; r < p; ++r) {
      const auto at = static_cast<std::size_t>(r);
      EXPECT_EQ(peaks("gpipe", linear(p, m))[at], m);
      EXPECT_EQ(peaks("1f1b", linear(p, m))[at], p - r);
      EXPECT_EQ(peaks("eager-1f1b", linear(p, m))[at], 2 * (p - r) - 1);
      EXPECT_EQ(peaks("zb-h1", linear(p, m, true))[at], p);
      EXPECT_EQ(peaks("zb-h2", linear(p, m, true))[at], 2 * p - 1);
      EXPECT_EQ(peaks("zb-v", v_shaped(p, m))[at], 2 * p);
    }
    for (const int v : {1, 2, 3, 4}) {
      const int on_rank_0 = 2 * (p - 1) + (v - 1) * p + 1;
      EXPECT_EQ(peaks("interleaved-1f1b", looped(p, v, m))[0], on_rank_0);
      EXPECT_EQ(peaks("interleaved-1f1b-torch", looped(p, v, m))[0], on_rank_0);
      EXPECT_EQ(peaks("looped-bfs", looped(p, v, m))[0], v * m);
    }
  }
}

TEST(Schedule, WarmUpsInClosedForm) {
  const auto warm_up = [](const std::string& name, const Program& program, int rank) {
    const Result<Schedule> schedule = make(name, program);
    const std::vector<Task>& order = schedule->ranks[static_cast<std::size_t>(rank)];
    const auto first = std::find_if(order.begin(), order.end(),
                                    [](const Task& task) { return task.kind != Kind::kForward; });
    return static_cast<int>(first - order.begin()) - 1;  // the round's own forward
  };
  for (const auto& [p, m] : {std::pair{4, 8}, {8, 16}, {8, 32}}) {
    for (int r = 0; r < p; ++r) {
      EXPECT_EQ(warm_up("1f1b", linear(p, m), r), p - 1 - r);
      EXPECT_EQ(warm_up("eager-1f1b", linear(p, m), r), 2 * (p - 1 - r));
      EXPECT_EQ(warm_up("zb-h1", linear(p, m, true), r), p - 1 - r);
      EXPECT_EQ(warm_up("zb-h2", linear(p, m, true), r), 2 * (p - 1 - r));
      for (const int v : {2, 3}) {
        EXPECT_EQ(warm_up("interleaved-1f1b", looped(p, v, m), r), 2 * (p - r - 1) + (v - 1) * p);
        EXPECT_EQ(warm_up("interleaved-zb", looped(p, v, m, true), r), (v - 1) * p + (p - 1 - r));
      }
    }
  }
}

// Two ranks, two chunks, four microbatches: groups of two.
TEST(Schedule, InterleavedOrder) {
  const Lines expected = {"0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3",
                          "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3"};
  EXPECT_EQ(orders("interleaved-1f1b", looped(2, 2, 4)), expected);
  EXPECT_EQ(orders("interleaved-1f1b-torch", looped(2, 2, 4)), expected);
}

// Five microbatches in groups of three: the last group has two.
TEST(Schedule, InterleavedRemainderIsTheLastGroup) {
  EXPECT_EQ(orders("interleaved-1f1b", looped(2, 2, 5), 3)[1],
            "1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1F3 1B0 1F4 1B1 3F3 1B2 3F4 3B3 3B4 1B3 1B4");
}

// Torch's rounds: five microbatches on two ranks make two rounds, not equal.
TEST(Schedule, TorchRounds) {
  EXPECT_NE(error_of("interleaved-1f1b-torch", looped(2, 2, 5)).find("2 equal rounds"),
            std::string::npos);
  // Six on four ranks: one round of six.
  EXPECT_EQ(orders("interleaved-1f1b-torch", looped(4, 2, 6))[3].substr(0, 37),
            "3F0 3F1 3F2 3F3 3F4 3F5 7F0 7B0 7F1 7");
}

TEST(Schedule, InterleavedZeroBubbleOrder) {
  EXPECT_EQ(orders("interleaved-zb", looped(2, 2, 2, true)),
            (Lines{"0F0 0F1 2F0 2F1 2I0 2W0 2I1 2W1 0I0 0W0 0I1 0W1",
                   "1F0 1F1 3F0 3I0 3F1 3I1 3W0 1I0 3W1 1I1 1W0 1W1"}));
}

TEST(Schedule, LoopedBreadthFirstOrder) {
  EXPECT_EQ(orders("looped-bfs", looped(2, 2, 2)),
            (Lines{"0F0 0F1 2F0 2F1 2B1 2B0 0B1 0B0", "1F0 1F1 3F0 3F1 3B1 3B0 1B1 1B0"}));
}

TEST(Schedule, ZeroBubbleVOrder) {
  EXPECT_EQ(orders("zb-v", v_shaped(2, 3)),
            (Lines{"0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2",
                   "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2"}));
  // One microbatch runs the order of three with the surplus left out.
  EXPECT_EQ(orders("zb-v", v_shaped(2, 1)),
            (Lines{"0F0 3F0 3I0 3W0 0I0 0W0", "1F0 2F0 2I0 2W0 1I0 1W0"}));
  // Two on three ranks run the order of five.
  EXPECT_EQ(orders("zb-v", v_shaped(3, 2))[2], "2F0 3F0 2F1 3F1 3I0 3W0 2I0 2W0 3I1 3W1 2I1 2W1");
}

// Each schedule over many sizes: each task exactly once (fit_program), and an
// order that runs to its end.
TEST(Schedule, EverySizeIsCompleteAndRuns) {
  const auto check = [](const std::string& name, const Program& program) {
    const Result<Schedule> schedule = make(name, program);
    ASSERT_TRUE(schedule.ok()) << name << ": " << schedule.error().message;
    const Result<Program> fitted = fit_program(program, *schedule);
    ASSERT_TRUE(fitted.ok()) << name << ": " << fitted.error().message;
    std::size_t tasks = 0;
    for (const std::vector<Task>& order : schedule->ranks) tasks += order.size();
    const int kinds = program.split_backward() ? 3 : 2;
    ASSERT_EQ(tasks, static_cast<std::size_t>(program.stages() * program.microbatches() * kinds));
    ASSERT_TRUE(runs_in_order(program, *schedule))
        << name << " on " << program.ranks() << " ranks, " << program.stages() << " stages, "
        << program.microbatches() << " microbatches";
  };
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 15; ++m) {
      for (const bool split : {false, true}) {
        for (const char* name : {"gpipe", "1f1b", "eager-1f1b", "critical-path"}) {
          check(name, linear(p, m, split));
        }
        for (int v = 1; v <= 4; ++v) {
          if (m % p == 0) check("interleaved-1f1b", looped(p, v, m, split));
          if (m % std::max(1, m / p) == 0) check("interleaved-1f1b-torch", looped(p, v, m, split));
          check("looped-bfs", looped(p, v, m, split));
          check("critical-path", looped(p, v, m, split));
        }
      }
      check("zb-h1", linear(p, m, true));
      check("zb-h2", linear(p, m, true));
      check("zb-v", v_shaped(p, m));
      for (int v = 1; v <= 4; ++v) {
        if (m % std::max(1, m / p) == 0) check("interleaved-zb", looped(p, v, m, true));
      }
    }
  }
}

TEST(Schedule, InterleavedGroupsThatMegatronAllowsRun) {
  int tried = 0;
  for (int p = 1; p <= 5; ++p) {
    for (int m = p; m <= 14; ++m) {
      for (int group = p; group <= m; ++group) {
        const bool allowed = m % group == 0 || m % group >= p;
        for (int v = 1; v <= 3; ++v) {
          const Program program = looped(p, v, m);
          const Result<Schedule> schedule = make("interleaved-1f1b", program, group);
          ASSERT_EQ(schedule.ok(), allowed) << p << " " << m << " " << group;
          if (!allowed) continue;
          ++tried;
          EXPECT_TRUE(fit_program(program, *schedule).ok());
          EXPECT_TRUE(runs_in_order(program, *schedule)) << p << " " << m << " " << group;
        }
      }
    }
  }
  EXPECT_GT(tried, 300);
}

// A permuted placement gets the order of the stage's place, so it still runs.
TEST(Schedule, OneStagePerRankMayBePermuted) {
  const auto reversed = [](bool split) {
    return testing::chain(4, 4, 6, split, [](int stage) { return 3 - stage; });
  };
  for (const char* name : {"gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2"}) {
    const bool split = std::string(name).starts_with("zb");
    const Lines straight = orders(name, linear(4, 6, split));
    Lines lines = orders(name, reversed(split));
    std::reverse(lines.begin(), lines.end());
    EXPECT_EQ(lines, straight);
    EXPECT_TRUE(runs_in_order(reversed(split), *make(name, reversed(split))));
  }
}

TEST(Schedule, JoinsAndRootsRunToo) {
  ProgramSpec spec;
  spec.ranks = 4;
  spec.microbatches = 5;
  spec.split_backward = true;
  spec.stages = {{0, {}, Backward::kFull},
                 {1, {}, Backward::kFull},
                 {2, {0, 1}, Backward::kFull},
                 {3, {0, 2}, Backward::kFull}};
  const Program program = Program::create(spec).value();
  for (const char* name : {"gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "critical-path"}) {
    EXPECT_TRUE(runs_in_order(program, *make(name, program))) << name;
  }
}

// Frozen stages keep the pattern; what they do not have is left out.
TEST(Schedule, FrozenStagesLeaveOutWhatTheyLack) {
  ProgramSpec spec = linear(3, 2, true).spec();
  spec.stages[0].backward = Backward::kNone;
  spec.stages[1].backward = Backward::kInput;
  const Program program = Program::create(spec).value();
  EXPECT_EQ(orders("zb-h1", program),
            (Lines{"0F0 0F1", "1F0 1F1 1I0 1I1", "2F0 2I0 2F1 2I1 2W0 2W1"}));
  for (const ScheduleEntry& entry : schedule_table()) {
    const Result<Schedule> schedule = make(std::string(entry.name), program);
    if (!schedule.ok()) continue;  // a multi-chunk shape that this is not
    EXPECT_TRUE(fit_program(program, *schedule).ok()) << entry.name;
  }
}

TEST(Schedule, ErrorsSayWhatIsAllowed) {
  EXPECT_NE(error_of("zbh1", linear(2, 2)).find("did you mean \"zb-h1\"? Known: zb-h1, "),
            std::string::npos);
  EXPECT_NE(error_of("zb-h1", linear(2, 2)).find("needs split backwards"), std::string::npos);
  EXPECT_NE(error_of("zb-h2", linear(2, 2)).find("needs split backwards"), std::string::npos);
  EXPECT_NE(error_of("1f1b", looped(2, 2, 2)).find("one stage per rank; rank 0 has 2"),
            std::string::npos);
  EXPECT_NE(error_of("interleaved-1f1b", v_shaped(2, 2)).find("stage 2 is on rank 1, not 0"),
            std::string::npos);
  EXPECT_NE(error_of("zb-v", looped(2, 2, 2, true)).find("stage 2 is on rank 0, not 1"),
            std::string::npos);
  EXPECT_NE(error_of("interleaved-1f1b", looped(4, 2, 2)).find("only 2"), std::string::npos);
  EXPECT_NE(error_of("interleaved-1f1b", looped(4, 2, 6)).find("a last group of 2"),
            std::string::npos);
  EXPECT_NE(error_of("interleaved-1f1b", looped(4, 2, 8), 3).find("allowed are 4"),
            std::string::npos);
}

TEST(Schedule, TableNamesAreUniqueAndMade) {
  std::set<std::string_view> names;
  for (const ScheduleEntry& entry : schedule_table()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.summary.empty());
  }
  EXPECT_EQ(names.size(), 15u);
}

// fit_program.

std::string misfit(const Program& program, const std::vector<Lines>& ranks) {
  Schedule schedule;
  for (const Lines& line : ranks) {
    schedule.ranks.emplace_back();
    for (const std::string& word : line) schedule.ranks.back().push_back(parse_task(word).value());
  }
  const Result<Program> fitted = fit_program(program, schedule);
  return fitted.ok() ? "" : fitted.error().message;
}

TEST(FitProgram, NamesTheFault) {
  const Program program = linear(2, 1);
  EXPECT_EQ(misfit(program, {{"0F0", "0B0"}, {"1F0", "1B0"}}), "");
  EXPECT_EQ(misfit(program, {{"0F0", "0B0"}}), "the order has 1 ranks; the program has 2");
  EXPECT_EQ(misfit(program, {{"0F0", "0B0"}, {"1F0"}}), "order of rank 1: 1B0 is missing");
  EXPECT_EQ(misfit(program, {{"0B0"}, {"1F0", "1B0"}}), "order of rank 0: 0F0 is missing");
  EXPECT_EQ(misfit(program, {{"0F0", "0B0", "0F0"}, {"1F0", "1B0"}}),
            "order of rank 0: 0F0 is there twice, at positions 0 and 2");
  EXPECT_EQ(misfit(program, {{"0F0", "0B0", "1F0"}, {"1B0"}}),
            "order of rank 0: 1F0 is on the wrong rank: stage 1 is placed on rank 1");
  EXPECT_NE(misfit(program, {{"0F0", "0B1"}, {"1F0", "1B0"}}).find("which has 0 to 0"),
            std::string::npos);
  EXPECT_NE(misfit(program, {{"2F0"}, {}}).find("names no stage"), std::string::npos);
  EXPECT_NE(misfit(program, {{"0F0", "0I0"}, {}}).find("not split"), std::string::npos);
}

TEST(FitProgram, FusesABThatStandsForIAndW) {
  const Program program = linear(1, 2, true);
  Schedule schedule;
  schedule.ranks = {{{0, Kind::kForward, 0},
                     {0, Kind::kForward, 1},
                     {0, Kind::kBackward, 1},
                     {0, Kind::kInputGradient, 0},
                     {0, Kind::kWeightGradient, 0}}};
  const Result<Program> fitted = fit_program(program, schedule);
  ASSERT_TRUE(fitted.ok()) << fitted.error().message;
  EXPECT_FALSE(fitted->fused(0, 0));
  EXPECT_TRUE(fitted->fused(0, 1));
  // A fused program and a schedule without B: nothing stays fused.
  const Result<Program> again = fit_program(*fitted, *make("1f1b", program));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_FALSE(again->fused(0, 1));

  EXPECT_NE(misfit(program, {{"0F0", "0F1", "0B0", "0B1", "0W1"}}).find("has both 0B1 and 0W1"),
            std::string::npos);
  EXPECT_NE(misfit(program, {{"0F0", "0F1", "0B0", "0I1", "0B1"}}).find("has both 0B1 and 0I1"),
            std::string::npos);
  EXPECT_EQ(misfit(program, {{"0F0", "0F1", "0B0", "0I1"}}), "order of rank 0: 0W1 is missing");
  EXPECT_EQ(misfit(program, {{"0F0", "0F1", "0B0"}}),
            "order of rank 0: 0I1 is missing, and there is no B");
}

TEST(FitProgram, FrozenStages) {
  ProgramSpec spec = linear(2, 1, true).spec();
  spec.stages[0].backward = Backward::kNone;
  spec.stages[1].backward = Backward::kInput;
  const Program program = Program::create(spec).value();
  EXPECT_EQ(misfit(program, {{"0F0"}, {"1F0", "1I0"}}), "");
  EXPECT_EQ(misfit(program, {{"0F0"}, {"1F0", "1B0"}}), "");
  EXPECT_NE(misfit(program, {{"0F0", "0I0"}, {"1F0", "1I0"}}).find("has no backward"),
            std::string::npos);
  EXPECT_NE(misfit(program, {{"0F0"}, {"1F0", "1I0", "1W0"}}).find("only an input gradient"),
            std::string::npos);
}

}  // namespace
}  // namespace rrfp
