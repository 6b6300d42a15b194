// Goal: no run of any policy beats the lower bound, and where its argument is
// tight, a schedule that is known to be best meets it.
#include "sim/lower_bound.h"

#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "tests/core/orders.h"
#include "tests/model/random_case.h"

namespace rrfp {
namespace {

Case uniform(const Program& program, std::int64_t forward_ns, std::int64_t backward_ns,
             std::int64_t weight_ns, std::int64_t latency_ns) {
  Case given{.name = "uniform", .program = program};
  const auto m = static_cast<std::size_t>(program.microbatches());
  for (int stage = 0; stage < program.stages(); ++stage) {
    given.duration_ns.insert(given.duration_ns.end(), m, forward_ns);
    given.duration_ns.insert(given.duration_ns.end(), m, backward_ns);
    given.duration_ns.insert(given.duration_ns.end(), m, weight_ns);
  }
  given.network.latency_ns.assign(program.edges().size(), std::vector<std::int64_t>(m, latency_ns));
  return given;
}

std::int64_t bound_ns(const Case& given) {
  return lower_bound_ns(*PreparedCase::create(given).value());
}

// Four ranks, eight microbatches, F = I = W = 1. The last rank starts at 3 and
// works for 24; with whole backwards three more of length 2 follow.
TEST(LowerBound, IsMetByTheBestSchedulesWithoutLatency) {
  EXPECT_EQ(bound_ns(uniform(testing::linear(4, 8), 1, 2, 0, 0)), 3 + 24 + 6);
  EXPECT_EQ(bound_ns(uniform(testing::linear(4, 8, true), 1, 1, 1, 0)), 3 + 24);
}

// One microbatch: there and back over three links of 10, with the way to each
// start of 5, and with the input there at 100.
TEST(LowerBound, IsTheLongestPathOfASingleMicrobatch) {
  Case given = uniform(testing::linear(4, 1), 1, 2, 0, 10);
  EXPECT_EQ(bound_ns(given), 4 * 1 + 4 * 2 + 6 * 10);
  given.dispatch_ns = 5;
  EXPECT_EQ(bound_ns(given), 4 * 1 + 4 * 2 + 6 * 10 + 8 * 5);
  given.input_ready_ns = {100};
  EXPECT_EQ(bound_ns(given), 100 + 4 * 1 + 4 * 2 + 6 * 10 + 8 * 5);
}

// A rank of its own decides anew after each task, or decides ahead.
TEST(LowerBound, CountsDispatchWithEachTaskAtQueueDepthOne) {
  Case given = uniform(testing::linear(1, 8), 1, 2, 0, 0);
  given.dispatch_ns = 5;
  EXPECT_EQ(bound_ns(given), 8 * (1 + 2) + 16 * 5);
  given.queue_depth = 2;
  EXPECT_EQ(bound_ns(given), 8 * (1 + 2) + 5);
}

TEST(LowerBound, NoRandomRunBeatsIt) {
  int met = 0;
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    const Case given = model::random_case(seed);
    const Result<SimulationResult> result = simulate(given, {.idle_causes = false});
    if (!result.ok() || !result->completed) continue;
    const std::int64_t bound = bound_ns(given);
    ASSERT_GE(result->makespan_ns, bound) << "RRFP random case " << seed;
    met += result->makespan_ns == bound ? 1 : 0;
  }
  // A bound that is always far away would hold, too.
  EXPECT_GT(met, 100);
  std::printf("%d of 3000 runs meet the bound\n", met);
}

}  // namespace
}  // namespace rrfp
