// Goal: the engine's three loops are one simulation. Without records and
// accounts it takes each rank ahead to its horizon, or where some message takes
// no time or notices travel, goes in rounds and hands messages to busy ranks
// early; with records it goes in plain rounds, which the reference model is
// held against. All must end in the same state.
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "sim/eager_engine.h"
#include "tests/model/random_case.h"
#include "tests/property/seeds.h"

namespace rrfp::model {
namespace {

// A random case without what asks for accounts. Two of three have no message
// that takes no time; one of two expects every rank to run whatever is ready.
Case unaccounted_case(std::uint64_t seed) {
  RandomCaseOptions options;
  options.rendezvous = false;
  if (seed % 4 == 0) {
    options.max_ranks = 12;
    options.max_stages = 14;
    options.max_microbatches = 12;
  }
  Case given = random_case(seed, options);
  given.network.mode = NetworkMode::kEager;
  given.network.bytes_per_second = 0;
  given.network.message_bytes.clear();
  given.tensor_parallel = {};
  const auto microbatches = static_cast<std::size_t>(given.program.microbatches());
  given.network.latency_ns.resize(given.program.edges().size());
  for (std::vector<std::int64_t>& of_edge : given.network.latency_ns) {
    of_edge.resize(microbatches, 0);
    if (seed % 3 == 0) continue;
    for (std::int64_t& ns : of_edge) ns += 1;
  }
  if (seed % 2 == 0) given.policy.anticipation.reset();
  return given;
}

std::string state_of(const EagerEngine& engine, const Program& program) {
  std::string state = "makespan " + std::to_string(engine.makespan_ns()) +
                      (engine.completed() ? ", completed" : ", blocked");
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const RankScheduler& scheduler = engine.scheduler(rank);
    state += "\n    rank " + std::to_string(rank) + ": busy " +
             std::to_string(engine.busy_ns(rank)) + ", decided " +
             std::to_string(scheduler.decided()) + ", first undecided " +
             std::to_string(scheduler.first_undecided()) + ", peak " +
             std::to_string(scheduler.admission().peak_bytes());
  }
  for (int stage = 0; stage < program.stages(); ++stage) {
    state += "\n    stage " + std::to_string(stage) + " ends";
    for (const Slot slot : {Slot::kForward, Slot::kBackward, Slot::kWeight}) {
      state += " " + std::to_string(engine.last_end_ns(stage, slot));
    }
  }
  return state;
}

TEST(FastLoops, EndInTheStateOfPlainRounds) {
  std::atomic<int> ahead = 0;
  const SeedRange range = seeds_to_run(20'000, 1'000);
  const auto failures = failing_seeds(range, [&](std::uint64_t seed) -> std::string {
    const Case given = unaccounted_case(seed);
    const auto prepared = PreparedCase::create(given);
    if (!prepared.ok()) return {};
    EagerEngine plain(**prepared, {.tasks = true});
    EagerEngine fast(**prepared, {});
    plain.run();
    const std::string expected = state_of(plain, given.program);
    // Twice, for a run must not leave anything behind.
    for (int run = 0; run < 2; ++run) {
      fast.run();
      const std::string found = state_of(fast, given.program);
      if (found != expected) {
        return "plain rounds: " + expected + "\n  without records: " + found + "\n  " +
               keep_case(given);
      }
    }
    ahead += fast.runs_ahead() ? 1 : 0;
    return {};
  });
  for (const SeedFailure& failure : failures) {
    ADD_FAILURE() << failure.what << "\n  run again: " << rerun_command(failure.seed);
  }
  // Both of the loops without accounts are met.
  if (failures.empty() && range.count >= 100) {
    EXPECT_GT(ahead, static_cast<int>(range.count / 10));
    EXPECT_LT(ahead, static_cast<int>(range.count * 9 / 10));
  }
}

}  // namespace
}  // namespace rrfp::model
