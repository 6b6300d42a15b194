// Goal: the simulator, fed with a run's own task and message times, gives the
// run's own length. In every kind of world, for the policies that users
// compare, the error of the median iteration is within 0.3%.
//
// Iterations in which a thread stalled for over 2 ms say something about the
// machine and not about the model: they are dropped and counted. Where too few
// are left, the run is repeated, a bounded number of times; then the test is
// skipped and says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "executor/realised_case.h"
#include "scheduler_core/random.h"
#include "sim/simulate.h"
#include "tests/executor/runs_for_tests.h"

namespace rrfp {
namespace {

constexpr int kRanks = 8;
constexpr int kMicrobatches = 16;

struct World {
  std::string name;
  double compute_cv = 0;
  double microbatch_cv = 0;
  bool slow_link = false;
};

struct PolicyUnderTest {
  std::string name;
  std::string hint;
  int window = kNoWindow;
  bool split = true;
  bool blocking = false;
  bool anticipates = false;
};

// A number of mean 1 with about this coefficient of variation.
double factor(double cv, std::uint64_t purpose, std::uint64_t index) {
  return 1 + cv * std::sqrt(12.0) * (random_unit({11, 0, purpose, index}) - 0.5);
}

Case make_case(const World& world, const PolicyUnderTest& policy) {
  Case made = chain_case(kRanks, kMicrobatches, policy.split, 0);
  for (TaskId task = 0; task < made.program.task_ids(); ++task) {
    if (!made.program.exists(task)) continue;
    const Slot slot = made.program.slot_of(task);
    double ms = slot == Slot::kBackward && !policy.split ? 4.0 : 2.0;
    ms *= factor(world.compute_cv, 1, static_cast<std::uint64_t>(task));
    ms *= factor(world.microbatch_cv, 2,
                 static_cast<std::uint64_t>(made.program.microbatch_of(task)));
    made.duration_ns[static_cast<std::size_t>(task)] = static_cast<std::int64_t>(ms * 1e6);
  }
  set_latency(made, 100 * kMicrosecond);
  if (world.slow_link) {
    auto& slow =
        made.network
            .latency_ns[static_cast<std::size_t>(made.program.find_edge(Kind::kForward, 3, 4))];
    slow.assign(slow.size(), 3 * kMillisecond);
  }
  made.policy.hint.name = policy.hint;
  made.policy.window = policy.window;
  if (policy.blocking) made.network.mode = NetworkMode::kRendezvous;
  if (policy.anticipates) made.policy.anticipation = Anticipation{750, 500};
  return made;
}

struct Measured {
  std::vector<double> errors;  // of iterations without a stall
  int dropped = 0;
};

void measure(const Case& input, int iterations, Measured& into) {
  TestRun run;
  run.prepare(input, iterations);
  run.plan->core.record = false;
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  for (const IterationRecord& record : run.sink->iterations) {
    if (record.worst_stall_ns() > 2 * kMillisecond) {
      ++into.dropped;
      continue;
    }
    const Result<SimulationResult> simulated = simulate(realised_case(*run.plan, record, 0));
    ASSERT_TRUE(simulated.ok()) << simulated.error().message;
    ASSERT_TRUE(simulated->completed);
    const auto measured_ns = static_cast<double>(record.makespan_ns());
    into.errors.push_back(std::abs(static_cast<double>(simulated->makespan_ns) / measured_ns - 1));
  }
}

TEST(ModelError, OfTheMedianIterationIsWithinThreePermille) {
  const World worlds[] = {{"no jitter", 0, 0, false},
                          {"compute CV .1", .1, 0, false},
                          {"microbatch CV .5", 0, .5, false},
                          {"one slow link", 0, 0, true}};
  const PolicyUnderTest policies[] = {
      {"1f1b blocking", "1f1b", 1, false, true, false},
      {"1f1b", "1f1b", 1, false, false, false},
      {"zb-h2", "zb-h2", 1, true, false, false},
      {"bfw", "bfw", kNoWindow, true, false, false},
      {"zb-h2 anticipating", "zb-h2", kNoWindow, true, false, true}};
  int dropped = 0;
  int noisy = 0;
  for (const World& world : worlds) {
    for (const PolicyUnderTest& policy : policies) {
      SCOPED_TRACE(world.name + ", " + policy.name);
      Measured measured;
      const Case input = make_case(world, policy);
      double median = 1;
      for (int tries = 0; tries < 3 && (measured.errors.size() < 3 || median > .003); ++tries) {
        measure(input, 3, measured);
        if (measured.errors.empty()) continue;
        std::sort(measured.errors.begin(), measured.errors.end());
        median = measured.errors[measured.errors.size() / 2];
      }
      dropped += measured.dropped;
      std::printf("  %-18s %-20s model error %.4f%% over %zu iterations, %d dropped\n",
                  world.name.c_str(), policy.name.c_str(), 100 * median, measured.errors.size(),
                  measured.dropped);
      if (measured.errors.size() < 3) {
        ++noisy;
        continue;
      }
      EXPECT_LE(median, .003);
    }
  }
  std::printf("  dropped %d iterations in which a thread stalled for over 2 ms\n", dropped);
  if (noisy > 0) {
    GTEST_SKIP() << noisy << " combinations had too few iterations without a stall: the machine "
                 << "is too busy for this test";
  }
}

}  // namespace
}  // namespace rrfp
