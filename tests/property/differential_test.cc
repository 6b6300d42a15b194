// Goal: simulate() and the reference model, two readings of the same rules,
// agree in every field on random cases; and the same comparison on the same
// cases notices each of the planted mistakes.
//
// A failure prints the seed, the command that runs it again, and where the
// smallest case that still differs was written.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "sim/simulate.h"
#include "tests/model/check_run.h"
#include "tests/model/compare_results.h"
#include "tests/model/random_case.h"
#include "tests/model/reference_simulator.h"
#include "tests/model/shrink.h"
#include "tests/property/seeds.h"

namespace rrfp::model {
namespace {

constexpr SimulateOptions kEverything{.idle_causes = true, .messages = true};

// Small worlds, where a difference is easy to read, and every eighth a larger one.
Case case_of(std::uint64_t seed) {
  RandomCaseOptions options;
  if (seed % 8 == 0) {
    options.max_ranks = 8;
    options.max_stages = 12;
    options.max_microbatches = 10;
  }
  return random_case(seed, options);
}

std::string differs(const Case& given) {
  return difference(reference_simulate(given, kEverything), simulate(given, kEverything));
}

std::string report(std::uint64_t seed, const Case& given, const std::string& what) {
  const Case small = shrink(given, [](const Case& smaller) { return !differs(smaller).empty(); });
  return what + "\n  run again: " + rerun_command(seed) + "\n  " + keep_case(given) +
         "\n  smaller, " + keep_case(small) + "\n  where " + differs(small);
}

TEST(Differential, SimulateAgreesWithTheReference) {
  const SeedRange range = seeds_to_run(20'000, 1'000);
  std::atomic<std::int64_t> runs = 0;
  const auto failures = failing_seeds(range, [&](std::uint64_t seed) {
    const Case given = case_of(seed);
    const std::string what = differs(given);
    runs += reference_simulate(given).ok() ? 1 : 0;
    return what.empty() ? what : report(seed, given, what);
  });
  for (const SeedFailure& failure : failures) {
    ADD_FAILURE() << "seed " << failure.seed << ": " << failure.what;
  }
  // A generator whose cases are refused would agree with anything.
  if (failures.empty()) {
    EXPECT_GE(runs, static_cast<std::int64_t>(range.count * 95 / 100));
  }
  std::printf("seeds %llu to %llu\n", static_cast<unsigned long long>(range.first),
              static_cast<unsigned long long>(range.first + range.count - 1));
}

// The idle causes and messages are options: leaving them out changes nothing else.
TEST(Differential, OptionsChangeOnlyWhatTheySay) {
  const auto failures = failing_seeds(seeds_to_run(2'000, 200), [](std::uint64_t seed) {
    const Case given = case_of(seed);
    Result<SimulationResult> all = simulate(given, kEverything);
    const Result<SimulationResult> bare =
        simulate(given, {.idle_causes = false, .messages = false});
    if (all.ok()) {
      all->messages.clear();
      for (RankResult& rank : all->ranks) rank.idle_ns = {};
    }
    return difference(all, bare);
  });
  for (const SeedFailure& failure : failures) {
    ADD_FAILURE() << failure.what << "\n  run again: " << rerun_command(failure.seed);
  }
}

// The reference keeps the rules that can be checked without simulating.
TEST(Differential, ReferenceRunsAreValid) {
  const auto failures = failing_seeds(seeds_to_run(5'000, 500), [](std::uint64_t seed) {
    const Case given = case_of(seed);
    const Result<SimulationResult> result = reference_simulate(given, kEverything);
    return result.ok() ? check_run(given, *result) : std::string();
  });
  for (const SeedFailure& failure : failures) {
    ADD_FAILURE() << failure.what << "\n  run again: " << rerun_command(failure.seed);
  }
}

// One rule read wrongly, in one place: the seeds above must tell, with room to spare.
TEST(Differential, FindsEveryPlantedMistake) {
  const SeedRange range = seeds_to_run(10'000, 1'000);
  for (const MutantName& planted : mutants()) {
    const auto found = failing_seeds(
        range,
        [&](std::uint64_t seed) {
          const Case given = case_of(seed);
          return difference(reference_simulate(given, kEverything),
                            reference_simulate(given, kEverything, planted.mutant));
        },
        1);
    EXPECT_FALSE(found.empty()) << "no seed tells the mistake \"" << planted.name << "\"";
    if (found.empty()) continue;
    std::printf("%-50s seed %llu: %s\n", std::string(planted.name).c_str(),
                static_cast<unsigned long long>(found.front().seed), found.front().what.c_str());
  }
}

}  // namespace
}  // namespace rrfp::model
