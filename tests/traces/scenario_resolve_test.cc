// Goal: cases hold exactly what the scenario says, all policies meet the same draws, and draws have
// the mean and spread that were asked for.
#include "traces/scenario_resolve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "traces/case_file.h"
#include "traces/scenario_file.h"

namespace rrfp {
namespace {

Scenario scenario_of(const std::string& text) {
  const Result<JsonDocument> document = parse_json(text, "s.json");
  EXPECT_TRUE(document.ok());
  Result<Scenario> scenario = read_scenario(*document);
  EXPECT_TRUE(scenario.ok()) << (scenario.ok() ? "" : scenario.error().message);
  return *std::move(scenario);
}

ScenarioResolver resolver_of(const std::string& text) {
  return *ScenarioResolver::create(scenario_of(text));
}

std::string with_variability(const std::string& models, int microbatches = 8, int lanes = 1) {
  return R"({"schema": "rrfp.scenario/1", "seed": 5, "iterations": 4,
    "pipeline": {"ranks": 3, "microbatches": )" +
         std::to_string(microbatches) + R"(, "split_backward": true},
    "durations": {"forward_ms": 1, "input_gradient_ms": 2, "weight_gradient_ms": 3},
    "tensor_parallel": {"lanes": )" +
         std::to_string(lanes) + R"(},
    "data_parallel": {"replicas": 2},
    "network": {"latency_us": 100, "activation_kib": 1},
    "memory": {"activation_mib": 2, "weight_stash_fraction": 0.5, "budget_activations": "zb-h2"},
    "variability": [)" +
         models + R"(],
    "policies": [
      {"name": "1f1b", "hint": "1f1b", "fixed": true, "budget_activations": "1f1b"},
      {"name": "ready", "hint": "bfw", "anticipation": true, "arrange": "hill"},
      {"name": "unlimited", "budget_bytes": null, "network_mode": "eager"}]})";
}

constexpr const char* kAllModels = R"(
  {"model": "lognormal", "on": "compute", "cv": 0.3},
  {"model": "lognormal", "on": "compute", "scope": "microbatch", "cv": 0.5},
  {"model": "lognormal", "on": "compute", "scope": "rank", "cv": 0.1},
  {"model": "lognormal", "on": "latency", "cv": 1},
  {"model": "spikes", "on": "latency", "probability": 0.25, "extra_ms": 3})";

TEST(ScenarioResolve, WithoutVariabilityEverythingIsExact) {
  const ScenarioResolver resolver = resolver_of(with_variability(""));
  const Result<Case> resolved = resolver.resolve(0, 3, 1);
  ASSERT_TRUE(resolved.ok()) << resolved.error().message;
  const Program& program = resolved->program;
  for (TaskId id = 0; id < program.task_ids(); ++id) {
    const std::int64_t ms = static_cast<int>(program.slot_of(id)) + 1;
    EXPECT_EQ(resolved->duration_ns[static_cast<std::size_t>(id)], ms * 1'000'000);
  }
  EXPECT_TRUE(resolved->expected_ns.empty());
  EXPECT_TRUE(resolved->network.expected_latency_ns.empty());
  EXPECT_EQ(resolved->network.latency_ns[0], std::vector<std::int64_t>(8, 100'000));
  EXPECT_EQ(resolved->network.message_bytes[0], 1024);
  EXPECT_EQ(resolved->memory.weight_stash_bytes[5], 1 << 20);
  using Budgets = std::vector<std::optional<std::int64_t>>;
  EXPECT_EQ(resolved->memory.budget_bytes, (Budgets{3 << 21, 2 << 21, 1 << 21}));
  EXPECT_EQ(resolver.budget_bytes(1), (Budgets{5 << 21, 5 << 21, 5 << 21}));
  EXPECT_EQ(resolver.budget_bytes(2), (Budgets{std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_EQ(resolved->policy.window, 1);
}

TEST(ScenarioResolve, AllPoliciesMeetTheSameDraws) {
  const ScenarioResolver resolver = resolver_of(with_variability(kAllModels, 8, 2));
  // In any order, alone or together.
  const Case last = *resolver.resolve(2, 1, 1);
  const Case first = *resolver.resolve(0, 1, 1);
  const Case middle = *resolver.resolve(1, 1, 1);
  for (const Case* other : {&middle, &last}) {
    EXPECT_EQ(first.duration_ns, other->duration_ns);
    EXPECT_EQ(first.expected_ns, other->expected_ns);
    EXPECT_EQ(first.network.latency_ns, other->network.latency_ns);
    EXPECT_EQ(first.network.expected_latency_ns, other->network.expected_latency_ns);
  }
  EXPECT_NE(middle.policy.arrangement, first.policy.arrangement);
}

TEST(ScenarioResolve, IterationsReplicasLanesAndSeedsDiffer) {
  const ScenarioResolver resolver = resolver_of(with_variability(kAllModels, 8, 2));
  const Case one = resolver.draw_world(0, 0);
  EXPECT_NE(one.duration_ns, resolver.draw_world(1, 0).duration_ns);
  EXPECT_NE(one.duration_ns, resolver.draw_world(0, 1).duration_ns);
  EXPECT_NE(one.network.latency_ns, resolver.draw_world(1, 0).network.latency_ns);
  EXPECT_NE(one.network.latency_ns, resolver.draw_world(0, 1).network.latency_ns);
  const std::vector<std::int64_t>& ns = one.network.latency_ns[0];
  EXPECT_NE(std::vector(ns.begin(), ns.begin() + 8), std::vector(ns.begin() + 8, ns.end()));
  Scenario other = resolver.scenario();
  other.seed = 6;
  EXPECT_NE(one.duration_ns, ScenarioResolver::create(other)->draw_world(0, 0).duration_ns);
}

TEST(ScenarioResolve, MoreMicrobatchesLeaveTheFirstOnesAlone) {
  const Case few = resolver_of(with_variability(kAllModels, 4)).draw_world(0, 0);
  const Case many = resolver_of(with_variability(kAllModels, 8)).draw_world(0, 0);
  for (int m = 0; m < 4; ++m) {
    EXPECT_EQ(
        few.duration_ns[static_cast<std::size_t>(few.program.task_id(1, Slot::kWeight, m))],
        many.duration_ns[static_cast<std::size_t>(many.program.task_id(1, Slot::kWeight, m))]);
  }
}

TEST(ScenarioResolve, OnlyWhatIsKnownIsExpected) {
  const Case world = resolver_of(with_variability(kAllModels)).draw_world(0, 0);
  const Program& program = world.program;
  const auto expected = [&](int stage, Slot slot, int m) {
    return world.expected_ns[static_cast<std::size_t>(program.task_id(stage, slot, m))];
  };
  for (int m = 0; m < 8; ++m) {
    // The factor of the microbatch, the same on all stages and kinds.
    EXPECT_EQ(expected(0, Slot::kForward, m), expected(2, Slot::kForward, m));
    EXPECT_NEAR(static_cast<double>(expected(1, Slot::kWeight, m)),
                3 * static_cast<double>(expected(0, Slot::kForward, m)), 2);
  }
  EXPECT_NE(expected(0, Slot::kForward, 0), expected(0, Slot::kForward, 1));
  // 100 us and a quarter of 3 ms.
  EXPECT_EQ(world.network.expected_latency_ns[0], std::vector<std::int64_t>(8, 850'000));
}

TEST(ScenarioResolve, KnownModelsAloneNeedNoExpectation) {
  const Case world = resolver_of(with_variability(R"({"model": "lognormal", "on": "compute",
      "scope": "operation", "cv": 0.3, "known": true})"))
                         .draw_world(0, 0);
  EXPECT_TRUE(world.expected_ns.empty());
  EXPECT_NE(world.duration_ns[0], world.duration_ns[1]);
}

TEST(ScenarioResolve, RankFactorsAreSharedWithinARank) {
  const Case world = resolver_of(with_variability(R"({"model": "lognormal", "on": "compute",
      "scope": "rank", "cv": 0.3})"))
                         .draw_world(2, 0);
  const Program& program = world.program;
  const auto at = [&](int stage, int m) {
    return world.duration_ns[static_cast<std::size_t>(program.task_id(stage, Slot::kForward, m))];
  };
  EXPECT_EQ(at(0, 0), at(0, 7));
  EXPECT_NE(at(0, 0), at(1, 0));
}

struct Moments {
  double mean = 0;
  double cv = 0;
};

Moments moments(const std::vector<std::int64_t>& values) {
  double sum = 0;
  double squares = 0;
  for (const std::int64_t value : values) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const auto count = static_cast<double>(values.size());
  const double mean = sum / count;
  return {mean, std::sqrt(squares / count - mean * mean) / mean};
}

TEST(ScenarioResolve, LognormalKeepsTheMeanAndHasTheCv) {
  const Case world = resolver_of(with_variability(R"(
      {"model": "lognormal", "on": "compute", "cv": 0.3},
      {"model": "lognormal", "on": "latency", "cv": 1})",
                                                  20'000))
                         .draw_world(0, 0);
  const Moments compute =
      moments(std::vector(world.duration_ns.begin(), world.duration_ns.begin() + 20'000));
  // Standard errors: .3 / sqrt(20000) = .0021; that of the CV is about .0018.
  EXPECT_NEAR(compute.mean / 1e6, 1, 0.01);
  EXPECT_NEAR(compute.cv, 0.3, 0.01);
  const Moments latency = moments(world.network.latency_ns[0]);
  EXPECT_NEAR(latency.mean / 1e5, 1, 0.035);
  EXPECT_NEAR(latency.cv, 1, 0.1);
}

TEST(ScenarioResolve, SpikesComeAsOftenAsAsked) {
  const Case world =
      resolver_of(with_variability(
                      R"({"model": "spikes", "on": "latency", "probability": 0.05, "extra_ms": 3})",
                      20'000))
          .draw_world(0, 0);
  int spikes = 0;
  for (const std::int64_t ns : world.network.latency_ns[0]) {
    ASSERT_TRUE(ns == 100'000 || ns == 3'100'000) << ns;
    spikes += ns == 3'100'000;
  }
  EXPECT_NEAR(spikes, 1000, 125);  // four standard deviations
}

TEST(ScenarioResolve, ResolvedCasesAreCaseFiles) {
  const ScenarioResolver resolver = resolver_of(with_variability(kAllModels, 8, 2));
  for (int policy = 0; policy < 3; ++policy) {
    const Case resolved = *resolver.resolve(policy, 0, 0);
    const std::string text = to_text(case_to_json(resolved), JsonLayout::kCompact);
    const Result<Case> read = read_case(*parse_json(text, "case.json"));
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(to_text(case_to_json(*read), JsonLayout::kCompact), text);
  }
}

TEST(ScenarioResolve, RefusesTimesThatCannotBeAddedUp) {
  Scenario scenario = scenario_of(with_variability(kAllModels));
  scenario.forward_ns.values = {kMostQuantity};
  scenario.variability.push_back(LatencySpikes{1, kMostQuantity});
  scenario.variability.push_back(LatencySpikes{1, kMostQuantity});
  scenario.variability.push_back(LatencySpikes{1, kMostQuantity});
  scenario.variability.push_back(LatencySpikes{1, kMostQuantity});
  const Result<Case> resolved = ScenarioResolver::create(scenario)->resolve(0, 0, 0);
  ASSERT_FALSE(resolved.ok());
  EXPECT_NE(resolved.error().message.find("too large together"), std::string::npos);
}

// The mean, not the draws: the same in every world.
TEST(ScenarioResolve, LaunchQueueMessagesTakeTheMeanTransferUnlessStated) {
  Scenario scenario = scenario_of(with_variability(kAllModels));
  scenario.network.bytes_per_second = 1'000'000'000;
  scenario.policies[0].mode = NetworkMode::kLaunchQueue;
  const ScenarioResolver resolver = *ScenarioResolver::create(scenario);
  // 1 KiB at 1 GB/s, 100 us of latency, and in one of four 3 ms more.
  EXPECT_EQ(resolver.resolve(0, 0, 0)->network.message_ns, 1'024 + 100'000 + 750'000);
  EXPECT_EQ(resolver.resolve(0, 3, 1)->network.message_ns, 851'024);
  EXPECT_EQ(resolver.resolve(1, 0, 0)->network.message_ns, 0) << "eager";
  EXPECT_TRUE(resolver.derives_message_ns(0));
  EXPECT_FALSE(resolver.derives_message_ns(1));

  // A policy that comes after one of another mode in the same world starts afresh.
  Case world = resolver.draw_world(0, 0);
  ASSERT_TRUE(resolver.apply(0, world).ok());
  ASSERT_TRUE(resolver.apply(1, world).ok());
  EXPECT_EQ(world.network.message_ns, 0);

  scenario.network.message_ns = 0;
  const ScenarioResolver stated = *ScenarioResolver::create(scenario);
  EXPECT_EQ(stated.resolve(0, 0, 0)->network.message_ns, 0);
  EXPECT_FALSE(stated.derives_message_ns(0));
}

TEST(ScenarioResolve, RefusesTablesOfAnotherPipeline) {
  Scenario scenario = scenario_of(with_variability(""));
  scenario.forward_ns = {StageTable::Shape::kPerStage, {1, 2}, 0};
  const Result<ScenarioResolver> resolver = ScenarioResolver::create(scenario);
  ASSERT_FALSE(resolver.ok());
  EXPECT_EQ(resolver.error().message, "forward has 2 values; the pipeline needs 3");
}

// A world drawn on another machine must be this one, to the last ns. The numbers are those of a
// separate computation from the formulas, in Python with its own normal quantile.
TEST(ScenarioResolve, DrawsAreTheSameOnEveryMachine) {
  const Case world = resolver_of(with_variability(kAllModels)).draw_world(3, 1);
  EXPECT_EQ(std::vector(world.duration_ns.begin(), world.duration_ns.begin() + 4),
            (std::vector<std::int64_t>{423'119, 1'127'633, 830'906, 1'077'956}));
  EXPECT_EQ(
      std::vector(world.network.latency_ns[0].begin(), world.network.latency_ns[0].begin() + 4),
      (std::vector<std::int64_t>{96'517, 126'916, 39'695, 3'079'086}));
}

// All of a few worlds in one number, taken before there were models other than these three: worlds
// of old scenario files are never to change.
TEST(ScenarioResolve, WorldsOfOldScenariosAreWhatTheyWere) {
  const ScenarioResolver resolver = resolver_of(with_variability(kAllModels, 8, 2));
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a, by whole numbers
  const auto take = [&hash](const std::vector<std::int64_t>& values) {
    for (const std::int64_t value : values) {
      hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001b3ULL;
    }
  };
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (int replica = 0; replica < 2; ++replica) {
      const Case world = resolver.draw_world(iteration, replica);
      take(world.duration_ns);
      take(world.expected_ns);
      for (const auto& latencies : world.network.latency_ns) take(latencies);
      for (const auto& latencies : world.network.expected_latency_ns) take(latencies);
    }
  }
  EXPECT_EQ(hash, 0x71833d1ad8c71156ULL);
}

}  // namespace
}  // namespace rrfp
