// Goal: without a window no case can deadlock: whatever the graph, the hint,
// the budgets from the least up, the arrival order, the anticipation and the
// queue depth, every program completes, within its budgets and by the rules
// that can be checked without simulating.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

#include "sim/simulate.h"
#include "tests/model/check_run.h"
#include "tests/model/random_case.h"
#include "tests/property/seeds.h"

namespace rrfp::model {
namespace {

std::string check_completes(std::uint64_t seed) {
  RandomCaseOptions options;
  options.windows = false;
  options.rendezvous = false;
  options.max_microbatches = 6;
  const Case given = random_case(seed, options);
  const Result<SimulationResult> result = simulate(given, {.idle_causes = true, .messages = true});
  std::string fault;
  if (!result.ok()) {
    fault = "error: " + result.error().message;
  } else if (!result->completed) {
    fault = "does not complete";
  } else {
    fault = check_run(given, *result);
  }
  if (fault.empty()) return {};
  return fault + "\n  run again: " + rerun_command(seed) + "\n  " + keep_case(given);
}

TEST(Completion, EveryProgramWithoutAWindowCompletesWithinItsBudget) {
  const SeedRange range = seeds_to_run(100'000, 2'000);
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(range.first),
              static_cast<unsigned long long>(range.first + range.count - 1));
  for (const SeedFailure& failure : failing_seeds(range, check_completes)) {
    ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
  }
}

// One byte less than the least that works is an error, which names what a
// person needs to mend it.
TEST(Completion, ABudgetBelowTheLeastThatWorksIsAnError) {
  std::atomic<int> refused = 0;
  const auto check = [&](std::uint64_t seed) -> std::string {
    Case given = random_case(seed);
    const Program& program = given.program;
    const int rank = static_cast<int>(seed % static_cast<std::uint64_t>(program.ranks()));
    std::int64_t least = 0;
    for (const int stage : program.stages_of(rank)) {
      std::int64_t token = 0;
      for (int m = 0; m < program.microbatches() && !given.memory.activation_bytes.empty(); ++m) {
        token = std::max(token, given.memory.activation_bytes[static_cast<std::size_t>(
                                    stage * program.microbatches() + m)]);
      }
      least += token;
    }
    if (least == 0) return {};
    ++refused;
    given.memory.budget_bytes.resize(static_cast<std::size_t>(program.ranks()));
    given.memory.budget_bytes[static_cast<std::size_t>(rank)] = least - 1;
    const Result<SimulationResult> result = simulate(given);
    if (result.ok()) return "runs below the least that works";
    for (const std::int64_t number : {std::int64_t{rank}, least - 1, least}) {
      if (result.error().message.find(std::to_string(number)) == std::string::npos) {
        return "does not name " + std::to_string(number) + ": " + result.error().message;
      }
    }
    return {};
  };
  for (const SeedFailure& failure : failing_seeds(seeds_to_run(1'000, 200), check)) {
    ADD_FAILURE() << failure.what << "\n  run again: " << rerun_command(failure.seed);
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace rrfp::model
