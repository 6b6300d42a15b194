// Goal: every idle nanosecond has the cause that the rules give it. Each case
// was worked by hand; the timeline stands above its test, the case and what it
// must give stand in tests/cases/idle-*.json. The simulator and the reference
// model are both held to them.
//
// In a timeline, [a,b) is a task and a-b an idle stretch with its cause. Hint
// bf, no latency and no limits where nothing else is said.
#include "scheduler_core/idle_cause.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sim/simulate.h"
#include "tests/model/check_run.h"
#include "tests/model/compare_results.h"
#include "tests/model/reference_simulator.h"
#include "tests/traces/files_for_tests.h"
#include "traces/case_file.h"
#include "traces/result_file.h"

namespace rrfp {
namespace {

using model::as_in_a_file;

Case case_named(const std::string& name) {
  Result<Case> given = read_case_file((own_cases() / ("idle-" + name + ".json")).string());
  EXPECT_TRUE(given.ok()) << given.error().message;
  return *std::move(given);
}

void expect_as_worked_by_hand(const std::string& name) {
  SCOPED_TRACE("tests/cases/idle-" + name + ".json");
  const Case given = case_named(name);
  const Result<SimulationResult> expected =
      read_result_file((own_cases() / ("idle-" + name + ".expected.json")).string());
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  const Result<SimulationResult> modelled = model::reference_simulate(given);
  ASSERT_TRUE(modelled.ok()) << modelled.error().message;
  EXPECT_EQ(model::difference(expected, as_in_a_file(*modelled)), "") << "in the reference model";
  const Result<SimulationResult> simulated = simulate(given);
  ASSERT_TRUE(simulated.ok()) << simulated.error().message;
  EXPECT_EQ(model::difference(expected, as_in_a_file(*simulated)), "") << "in simulate()";
  EXPECT_EQ(model::check_run(given, *simulated), "");
}

// One microbatch down a chain of two ranks and back. F 10 and 20, B 40 and 30;
// 5 ns down, 7 ns up.
//   rank 0  [0,10) 0F0   10-65 upstream (rank 1 computes, and what is on the way until 15 is not
//           for rank 0)   65-72 communication   [72,112) 0B0
//   rank 1  0-15 fill   [15,35) 1F0   [35,65) 1B0   65-112 drain
TEST(IdleCause, Chain) { expect_as_worked_by_hand("chain"); }

// One stage alone; its inputs come at 5 and 40. Rank 1 has no stage at all.
//   rank 0  0-5 fill (not input: it has decided nothing yet)   [5,15) 0F0   [15,25) 0B0
//           25-40 input   [40,50) 0F1   [50,60) 0B1
//   rank 1  0-60 drain
TEST(IdleCause, Input) { expect_as_worked_by_hand("input"); }

// Rank 0 has room for one activation. F 10, B 20.
//   rank 0  [0,10) 0F0   10-40 memory (0F1 is ready, its activation does not fit)   [40,60) 0B0
//           [60,70) 0F1   70-100 upstream (no F is left to be blocked)   [100,120) 0B1
//   rank 1  0-10 fill   [10,20) 1F0   [20,40) 1B0   40-70 upstream   [70,80) 1F1   [80,100) 1B1
//           100-120 drain
TEST(IdleCause, Memory) { expect_as_worked_by_hand("memory"); }

// Both ranks run F0 B0 F1 B1 with a window of 1. F 10, B 20; gradients take 3.
//   rank 0  [0,10) 0F0   10-43 order (0F1 could run and is outside the window; so it stays while
//           the gradient is on the way from 40)   [43,63) 0B0   [63,73) 0F1
//           73-103 upstream   103-106 communication   [106,126) 0B1
//   rank 1  0-10 fill   [10,20) 1F0   [20,40) 1B0   40-73 upstream   [73,83) 1F1   [83,103) 1B1
//           103-126 drain
TEST(IdleCause, Order) { expect_as_worked_by_hand("order"); }

// Two lanes, leader mode, announcing 3, dispatch 2; votes (9) play no part. All tasks 10. The
// activation takes 5 to lane 0 and 20 to lane 1; the gradient 1 to both.
//   rank 0  0-5 dispatch (it decided at 0)   [5,15) 0F0   15-60 upstream   60-61 communication
//           61-66 dispatch   [66,76) 0B0
//   rank 1  0-20 fill (lane 0 has it at 20, and decides)   20-35 dispatch (ready to go at 25, but
//           lane 1 has it only at 35)   [35,45) 1F0   45-50 dispatch   [50,60) 1B0   60-76 drain
TEST(IdleCause, Leader) { expect_as_worked_by_hand("leader"); }

// Two lanes that vote (3), announcing 1, dispatch 2, two tasks in the queue. F 10; B 10 on rank 0
// and 20 on rank 1. Activations take 10 to lane 0 and 9 to lane 1, which is 12 with its vote;
// gradients take 0, which is 3 with the vote.
//   rank 0  0-3 dispatch of 0F0 and 0F1, both decided at 0   [3,13) 0F0   [13,23) 0F1
//           23-68 upstream   68-71 communication   71-74 dispatch   [74,84) 0B0   84-88 upstream
//           88-91 communication   91-94 dispatch   [94,104) 0B1
//   rank 1  0-25 fill (13 + 12)   25-28 dispatch   [28,38) 1F0   [38,48) 1F1, decided at its
//           arrival at 35   [48,68) 1B0, decided at 38   [68,88) 1B1, decided at 48
//           88-104 drain
TEST(IdleCause, Vote) { expect_as_worked_by_hand("vote"); }

// Rank 1 runs stage 1, fed by rank 0, and a root stage 2; the hint is 2F0 1F0 2F1 1F1. All frozen.
// 0F takes 20, 1F 10, 2F0 10 and 2F1 40; 5 ns on the way, notices take 3. Reach 500, no grace.
//   rank 0  [0,20) 0F0, announced at 3 for 25   [20,40) 0F1   40-85 drain
//   rank 1  [0,10) 2F0   10-25 anticipation (2F1 could run, 1F0 is better and due in 15; the reach
//           is half of 40)   [25,35) 1F0   [35,75) 2F1 (nothing better is announced: 1F1 stands
//           behind it)   [75,85) 1F1
TEST(IdleCause, Anticipation) { expect_as_worked_by_hand("anticipation"); }

// The same, but messages take 30 where 5 are expected, and the grace is a tenth of 2F1: 4.
//   rank 0  [0,20) 0F0   [20,40) 0F1   40-90 drain
//   rank 1  [0,10) 2F0   10-30 anticipation (1F0 is due at 25, is waited for up to 29, and given
//           up at 25 + 4 + 1)   [30,70) 2F1   [70,80) 1F0 (there since 50)   [80,90) 1F1 (there
//           since 70)
TEST(IdleCause, LateAnticipation) { expect_as_worked_by_hand("late"); }

// 1f1b with blocking transfers: 0F0 0F1 0B0 0B1 and 1F0 1B0 1F1 1B1. F 10, B 20; an activation
// takes 2, a gradient 3.
//   rank 0  [0,10) 0F0   10-12 phase: sends activation 0   [12,22) 0F1   22-45 phase: sends
//           activation 1 from 42, when rank 1 posts it, to 44, and gets gradient 0 from 42 to 45
//           [45,65) 0B0   65-78 phase: gets gradient 1 from 75   [78,98) 0B1
//   rank 1  0-12 fill (though in its first phase)   [12,22) 1F0   [22,42) 1B0   42-45 phase
//           [45,55) 1F1   [55,75) 1B1   75-98 drain (though in its last phase until 78)
TEST(IdleCause, Rendezvous) {
  expect_as_worked_by_hand("rendezvous");
  // The file says communication for both; these are all phases.
  for (const auto& result :
       {simulate(case_named("rendezvous")), model::reference_simulate(case_named("rendezvous"))}) {
    ASSERT_TRUE(result.ok());
    const auto of = [&](std::size_t rank, IdleCause cause) {
      return result->ranks[rank].idle_ns[static_cast<std::size_t>(cause)];
    };
    EXPECT_EQ(of(0, IdleCause::kRendezvous), 38);
    EXPECT_EQ(of(0, IdleCause::kCommunication), 0);
    EXPECT_EQ(of(1, IdleCause::kRendezvous), 3);
    EXPECT_EQ(of(1, IdleCause::kCommunication), 0);
  }
}

// gpipe with blocking transfers of 1 ns, all tasks 10; the second input comes at 50.
//   rank 0  [0,10) 0F0   10-11 phase   11-50 input (its phase is over)   [50,60) 0F1
//           60-82 phase: activation 1 is over at 61, gradient 0 at 82   [82,92) 0B0
//           92-93 phase   [93,103) 0B1
//   rank 1  0-11 fill   [11,21) 1F0   21-61 phase   [61,71) 1F1   [71,81) 1B0   81-82 phase
//           [82,92) 1B1   92-103 drain
TEST(IdleCause, RendezvousInput) { expect_as_worked_by_hand("rendezvous-input"); }

// Orders that contradict each other: rank 0 wants 0B0 before 0F1, rank 1 wants 1F1 before 1B0.
// Rank 1 runs two tasks of 5 of a frozen root stage first; rank 2 runs two of 50. F 10; an
// activation takes 8. Blocked at 0B0 and 1F1; the last end is at 100.
//   rank 0  [0,10) 0F0   10-100 order (0F1 could run)
//   rank 1  [0,5) 3F0   [5,10) 3F1   10-18 communication   18-100 order (1F0 could run)
//   rank 2  [0,50) 2F0   [50,100) 2F1
TEST(IdleCause, Blocked) { expect_as_worked_by_hand("blocked"); }

// Stages 0 and 1 join in stage 2, one stage a rank, so memory is given oldest first. Activations
// of 4 bytes, and rank 0 has room for one. F 10, 30 and 10; B 10. One byte takes 1 ns: 5 for an
// activation of stage 0, which then takes 1 more, none for one of stage 1, 6 for each gradient
// (over two links, so both at once).
//   rank 0  [0,10) 0F0   10-56 memory (0F1; it comes before the gradient on the way from 50)
//           [56,66) 0B0   [66,76) 0F1   76-102 upstream   102-108 communication   [108,118) 0B1
//   rank 1  [0,30) 1F0   [30,60) 1F1   [60,70) 1B0   70-102 upstream   102-108 communication
//           [108,118) 1B1
//   rank 2  0-30 fill (activation 0 of stage 0 is there at 16)   [30,40) 2F0   [40,50) 2B0
//           50-76 upstream   76-82 communication   [82,92) 2F1   [92,102) 2B1   102-118 drain
// Peaks: 4, 8 and 4 bytes; rank 2 holds one received activation of 5 bytes at a time.
TEST(IdleCause, Join) { expect_as_worked_by_hand("join"); }

// All frozen; stage 1 and a root stage 2 on rank 1, stage 0 on rank 0. F 10, 5 and 5; inputs at 0
// and 60; an activation takes 20.
//   rank 0  [0,10) 0F0   10-60 input   [60,70) 0F1   70-95 drain
//   rank 1  [0,5) 2F0   5-10 input (2F1 waits for it, and that comes before upstream)
//           10-30 communication (which comes before input)   [30,35) 1F0   35-60 input
//           [60,65) 2F1   65-70 upstream   70-90 communication   [90,95) 1F1
TEST(IdleCause, Precedence) { expect_as_worked_by_hand("precedence"); }

TEST(IdleCause, EveryCauseIsWorkedByHandSomewhere) {
  IdleTimes sum{};
  int cases = 0;
  for (const std::string& path : case_paths(own_cases())) {
    if (path.find("/idle-") == std::string::npos) continue;
    ++cases;
    const Result<Case> given = read_case_file(path);
    ASSERT_TRUE(given.ok()) << given.error().message;
    const Result<SimulationResult> result = simulate(*given);
    ASSERT_TRUE(result.ok()) << result.error().message;
    for (const RankResult& rank : result->ranks) {
      for (std::size_t cause = 0; cause < sum.size(); ++cause) sum[cause] += rank.idle_ns[cause];
    }
  }
  EXPECT_EQ(cases, 13);
  for (std::size_t cause = 0; cause < sum.size(); ++cause) EXPECT_GT(sum[cause], 0) << cause;
}

}  // namespace
}  // namespace rrfp
