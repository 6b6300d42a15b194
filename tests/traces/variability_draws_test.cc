// Goal: each model acts on what it says and on nothing else, a draw is shared over its scope and
// nowhere else, and schedulers expect what they can know.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "traces/scenario_file.h"
#include "traces/scenario_resolve.h"

namespace rrfp {
namespace {

constexpr int kMicrobatches = 8;

// Four ranks, two replicas, two lanes; F 10 ms, I 20 ms, W 30 ms; 1 ms a message and 100 us
// latency.
ScenarioResolver resolver_of(const std::string& models, const std::string& more = "",
                             bool split = true) {
  const std::string durations =
      split ? R"({"forward_ms": 10, "input_gradient_ms": 20, "weight_gradient_ms": 30})"
            : R"({"forward_ms": 10, "backward_ms": 50})";
  const std::string text = R"({"schema": "rrfp.scenario/1", "seed": 5, "iterations": 100000,
    "pipeline": {"ranks": 4, "microbatches": 8, "split_backward": )" +
                           std::string(split ? "true" : "false") + R"(},
    "durations": )" + durations +
                           R"(, "tensor_parallel": {"lanes": 2}, "data_parallel": {"replicas": 2},
    "network": {"latency_us": 100, "activation_bytes": 1000, "bandwidth_bytes_per_second": 1000000},
    "variability": [)" + models +
                           "]" + more + R"(, "policies": [{"name": "bf"}]})";
  const Result<JsonDocument> document = parse_json(text, "s.json");
  EXPECT_TRUE(document.ok());
  Result<Scenario> scenario = read_scenario(*document);
  EXPECT_TRUE(scenario.ok()) << (scenario.ok() ? "" : scenario.error().message);
  return *ScenarioResolver::create(*std::move(scenario));
}

std::int64_t at(const Case& world, int stage, Slot slot, int m) {
  return world.duration_ns[static_cast<std::size_t>(world.program.task_id(stage, slot, m))];
}

std::int64_t expected_at(const Case& world, int stage, Slot slot, int m) {
  const std::vector<std::int64_t>& ns =
      world.expected_ns.empty() ? world.duration_ns : world.expected_ns;
  return ns[static_cast<std::size_t>(world.program.task_id(stage, slot, m))];
}

std::int64_t latency(const Case& world, Kind kind, int from, int to, int m, int lane = 0) {
  const EdgeId edge = world.program.find_edge(kind, from, to);
  return world.network.latency_ns[static_cast<std::size_t>(edge)]
                                 [static_cast<std::size_t>(lane * kMicrobatches + m)];
}

std::int64_t expected_latency(const Case& world, Kind kind, int from, int to, int m) {
  const EdgeId edge = world.program.find_edge(kind, from, to);
  return world.network
      .expected_latency_ns[static_cast<std::size_t>(edge)][static_cast<std::size_t>(m)];
}

constexpr Slot kF = Slot::kForward;
constexpr Slot kI = Slot::kBackward;
constexpr Slot kW = Slot::kWeight;
constexpr double kMs = 1e6;

// How many different durations the forwards (and, by kind, all tasks relative to their base) have.
std::size_t different(const ScenarioResolver& resolver, int iterations) {
  std::set<double> factors;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (int replica = 0; replica < 2; ++replica) {
      const Case world = resolver.draw_world(iteration, replica);
      for (int stage = 0; stage < 4; ++stage) {
        for (int m = 0; m < kMicrobatches; ++m) {
          for (const auto& [slot, ms] : {std::pair{kF, 10.0}, {kI, 20.0}, {kW, 30.0}}) {
            factors.insert(std::round(static_cast<double>(at(world, stage, slot, m)) / ms / 10));
          }
        }
      }
    }
  }
  return factors.size();
}

// 2 iterations, 2 replicas, 4 stages, 3 kinds, 8 microbatches. A few values may meet by chance.
TEST(VariabilityDraws, ADrawIsSharedOverItsScope) {
  const auto count = [](const std::string& more) {
    return different(
        resolver_of(R"({"model": "factor", "on": "compute", "uniform": [1, 2], )" + more + "}"), 2);
  };
  EXPECT_GE(count(R"("scope": "operation")"), 380U);
  EXPECT_EQ(count(R"("scope": "microbatch")"), 2U * 2 * 8);
  EXPECT_EQ(count(R"("scope": "stage")"), 2U * 4);
  EXPECT_EQ(count(R"("scope": "rank")"), 2U * 4);
  EXPECT_EQ(count(R"("scope": "rank", "group": 2)"), 2U * 2);
  EXPECT_EQ(count(R"("scope": "gpu")"), 2U * 2 * 4);
  EXPECT_EQ(count(R"("scope": "replica")"), 2U * 2);
  EXPECT_EQ(count(R"("scope": "iteration")"), 2U);
  EXPECT_EQ(count(R"("scope": "gpu", "static": true)"), 2U * 4);
  EXPECT_EQ(count(R"("scope": "iteration", "static": true)"), 1U);
}

TEST(VariabilityDraws, SelectionsConfine) {
  const Case world = resolver_of(R"({"model": "factor", "on": "compute", "value": 2,
      "tasks": ["F", "W"], "stages": [1, 2], "ranks": [2, 3], "replicas": [1],
      "iterations": {"from": 3, "to": 4}})")
                         .draw_world(3, 1);
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(at(world, stage, kF, 5), (stage == 2 ? 20 : 10) * kMs);
    EXPECT_EQ(at(world, stage, kI, 5), 20 * kMs);
    EXPECT_EQ(at(world, stage, kW, 5), (stage == 2 ? 60 : 30) * kMs);
  }
  const ScenarioResolver elsewhere = resolver_of(R"({"model": "factor", "on": "compute", "value": 2,
      "replicas": [1], "iterations": {"from": 3, "to": 4}})");
  EXPECT_EQ(at(elsewhere.draw_world(3, 0), 2, kF, 0), 10 * kMs);
  EXPECT_EQ(at(elsewhere.draw_world(2, 1), 2, kF, 0), 10 * kMs);
  EXPECT_EQ(at(elsewhere.draw_world(4, 1), 2, kF, 0), 20 * kMs);
  EXPECT_EQ(at(elsewhere.draw_world(5, 1), 2, kF, 0), 10 * kMs);
}

TEST(VariabilityDraws, BMeansTheWholeBackward) {
  const char* models = R"({"model": "factor", "on": "compute", "F": 2, "B": 3},
                          {"model": "extra", "on": "compute", "extra_ms": 1, "tasks": ["B"]})";
  const Case split = resolver_of(models).draw_world(0, 0);
  EXPECT_EQ(at(split, 1, kF, 0), 20 * kMs);
  EXPECT_EQ(at(split, 1, kI, 0), 61 * kMs);
  EXPECT_EQ(at(split, 1, kW, 0), 91 * kMs);
  const Case whole = resolver_of(models, "", false).draw_world(0, 0);
  EXPECT_EQ(at(whole, 1, kI, 0), 151 * kMs);
  const Case own =
      resolver_of(R"({"model": "factor", "on": "compute", "B": 3, "W": 1})").draw_world(0, 0);
  EXPECT_EQ(at(own, 1, kF, 0), 10 * kMs);
  EXPECT_EQ(at(own, 1, kW, 0), 30 * kMs);
}

TEST(VariabilityDraws, KindsShareTheirDraw) {
  const Case world = resolver_of(R"({"model": "factor", "on": "compute",
      "F": {"uniform": [1, 2]}, "I": {"uniform": [3, 5]}, "W": 1})")
                         .draw_world(0, 0);
  for (int stage = 0; stage < 4; ++stage) {
    for (int m = 0; m < kMicrobatches; ++m) {
      const double u = static_cast<double>(at(world, stage, kF, m)) / (10 * kMs) - 1;
      EXPECT_NEAR(static_cast<double>(at(world, stage, kI, m)) / (20 * kMs), 3 + 2 * u, 1e-6);
      EXPECT_EQ(at(world, stage, kW, m), 30 * kMs);
    }
  }
  EXPECT_NE(at(world, 0, kF, 0), at(world, 1, kF, 0));
}

TEST(VariabilityDraws, FactorsComeBeforeExtraTimes) {
  const Case world = resolver_of(R"({"model": "extra", "on": "compute", "extra_ms": 7},
      {"model": "factor", "on": "compute", "value": 1.5},
      {"model": "factor", "on": "compute", "value": 2})")
                         .draw_world(0, 0);
  EXPECT_EQ(at(world, 0, kF, 0), 37 * kMs);
}

TEST(VariabilityDraws, ProbabilityIsHowOften) {
  const ScenarioResolver resolver = resolver_of(
      R"({"model": "factor", "on": "compute", "value": 4, "probability": 0.1,
          "first_of_iteration": true})");
  int slow = 0;
  for (int iteration = 0; iteration < 2000; ++iteration) {
    const Case world = resolver.draw_world(iteration, 0);
    for (int stage = 0; stage < 4; ++stage) {
      slow += at(world, stage, kF, 0) == 40'000'000;
      ASSERT_EQ(at(world, stage, kF, 1), 10 * kMs);
      ASSERT_EQ(at(world, stage, kI, 0), 20 * kMs);
    }
    // The scheduler knows the mean: 1 + .1 * 3.
    ASSERT_EQ(expected_at(world, 0, kF, 0), 13 * kMs);
    ASSERT_EQ(expected_at(world, 0, kF, 1), 10 * kMs);
  }
  EXPECT_NEAR(slow, 800, 4 * std::sqrt(8000 * 0.1 * 0.9));
}

TEST(VariabilityDraws, KnownDrawsAreExpected) {
  const Case unknown =
      resolver_of(R"({"model": "factor", "on": "compute", "uniform": [1, 2]})").draw_world(0, 0);
  EXPECT_NEAR(static_cast<double>(expected_at(unknown, 2, kF, 3)), 15 * kMs, 1);
  const Case known = resolver_of(R"({"model": "factor", "on": "compute", "uniform": [1, 2],
      "known": true}, {"model": "extra", "on": "compute", "extra_ms": 1})")
                         .draw_world(0, 0);
  EXPECT_EQ(expected_at(known, 2, kF, 3), at(known, 2, kF, 3));
  EXPECT_TRUE(resolver_of(R"({"model": "factor", "on": "compute", "uniform": [1, 2],
      "known": true})")
                  .draw_world(0, 0)
                  .expected_ns.empty());
}

TEST(VariabilityDraws, MessagesTakeFactorsAndExtraTimes) {
  const ScenarioResolver resolver = resolver_of(
      R"({"model": "extra", "on": "latency", "extra_ms": {"uniform": [1, 2]}, "links": [[1, 2]]},
         {"model": "factor", "on": "latency", "scope": "link", "uniform": [2, 3], "tasks": ["B"]})");
  const Case world = resolver.draw_world(0, 0);
  EXPECT_EQ(latency(world, Kind::kForward, 0, 1, 0), 100'000);
  EXPECT_GT(latency(world, Kind::kForward, 1, 2, 0), 1'100'000);
  EXPECT_NE(latency(world, Kind::kForward, 1, 2, 0), latency(world, Kind::kForward, 1, 2, 1));
  EXPECT_NE(latency(world, Kind::kForward, 1, 2, 0), latency(world, Kind::kForward, 1, 2, 0, 1));
  const std::int64_t back = latency(world, Kind::kBackward, 2, 1, 0);
  EXPECT_GT(back, 200'000);
  EXPECT_LT(back, 300'000);
  EXPECT_EQ(back, latency(world, Kind::kBackward, 2, 1, 7, 1)) << "one draw per link";
  EXPECT_NE(back, latency(world, Kind::kBackward, 3, 2, 0));
  EXPECT_NEAR(static_cast<double>(expected_latency(world, Kind::kForward, 1, 2, 0)), 1.6e6, 1);
  EXPECT_NEAR(static_cast<double>(expected_latency(world, Kind::kBackward, 2, 1, 0)), 250e3, 1);
}

// 1 ms at half the bandwidth takes 1 ms longer.
TEST(VariabilityDraws, BandwidthIsTakenByLatency) {
  const Case world = resolver_of(R"({"model": "factor", "on": "bandwidth", "value": 0.5,
      "links": [[0, 1]]})")
                         .draw_world(0, 0);
  EXPECT_EQ(latency(world, Kind::kForward, 0, 1, 3, 1), 1'100'000);
  EXPECT_EQ(latency(world, Kind::kForward, 1, 2, 3), 100'000);
  EXPECT_EQ(expected_latency(world, Kind::kForward, 0, 1, 3), 1'100'000);
  const Case faster =
      resolver_of(R"({"model": "factor", "on": "bandwidth", "value": 2})").draw_world(0, 0);
  EXPECT_EQ(latency(faster, Kind::kForward, 0, 1, 3), 0) << "latency cannot be less than nothing";
}

TEST(VariabilityDraws, InputsComeLate) {
  const ScenarioResolver resolver = resolver_of(
      R"({"model": "extra", "on": "input", "extra_ms": 3},
         {"model": "extra", "on": "input", "scope": "replica", "extra_ms": {"uniform": [1, 2]}})",
      R"(, "input_ready_ms": [0, 1, 2, 3, 4, 5, 6, 7])");
  const Case world = resolver.draw_world(0, 0);
  const std::int64_t first = world.input_ready_ns[0];
  EXPECT_GT(first, 4 * kMs);
  for (int m = 0; m < kMicrobatches; ++m) {
    EXPECT_EQ(world.input_ready_ns[static_cast<std::size_t>(m)], first + m * 1'000'000);
  }
  EXPECT_NE(first, resolver.draw_world(0, 1).input_ready_ns[0]);
}

TEST(VariabilityDraws, RepeatedStepsComeInTheirTurn) {
  const auto steps_of = [](const ScenarioResolver& resolver, int stage, int replica) {
    std::vector<int> steps;
    for (int iteration = 0; iteration < 3000; ++iteration) {
      if (at(resolver.draw_world(iteration, replica), stage, kF, 0) > 1'000'000'000) {
        steps.push_back(iteration);
      }
    }
    return steps;
  };
  const std::string pause = R"({"model": "extra", "on": "compute", "extra_s": 1.45, "scope": "gpu",
      "first_of_iteration": true, "steps": {"every": 265, "spread": 7, "same": )";
  const ScenarioResolver together = resolver_of(pause + "true}}");
  const ScenarioResolver apart = resolver_of(pause + "false}}");
  const std::vector<int> steps = steps_of(together, 0, 0);
  ASSERT_GE(steps.size(), 11U);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_NEAR(steps[i] - steps[i - 1], 265, 7);
  }
  EXPECT_EQ(steps, steps_of(together, 3, 1));
  const std::vector<int> own = steps_of(apart, 0, 0);
  EXPECT_GE(own.size(), 11U);
  EXPECT_NE(own, steps_of(apart, 1, 0));
  EXPECT_NE(own, steps_of(apart, 0, 1));
  for (std::size_t i = 1; i < own.size(); ++i) EXPECT_NEAR(own[i] - own[i - 1], 265, 7);
}

TEST(VariabilityDraws, PackedLengthsFillTheMicrobatch) {
  const Case world = resolver_of(R"({"model": "lengths", "length": {"uniform": [1, 3000]},
      "unit": 4096, "pack": true, "messages": true,
      "costs": [{"tasks": ["F"], "linear": 1}, {"tasks": ["I"], "quadratic": 1},
                {"stages": [1], "constant": 2}]})")
                         .draw_world(0, 0);
  std::set<std::int64_t> squares;
  for (int m = 0; m < kMicrobatches; ++m) {
    EXPECT_NEAR(static_cast<double>(at(world, 2, kF, m)), 10 * kMs, 1) << "L is 1";
    EXPECT_EQ(at(world, 0, kI, m), at(world, 3, kI, m)) << "all stages see the same lengths";
    EXPECT_LE(at(world, 0, kI, m), 20 * kMs + 1);
    squares.insert(at(world, 0, kI, m));
    EXPECT_EQ(at(world, 1, kW, m), 60 * kMs);
    EXPECT_EQ(at(world, 0, kW, m), 30 * kMs) << "no cost is given";
  }
  EXPECT_GT(squares.size(), 6U);
  EXPECT_EQ(world.network.message_bytes[0], 1000);
  EXPECT_TRUE(world.expected_ns.empty()) << "known unless it says otherwise";
}

TEST(VariabilityDraws, LengthsScaleMessages) {
  const Case world = resolver_of(R"({"model": "lengths", "length": {"uniform": [1, 3]}, "unit": 2,
      "messages": true, "samples": 2, "known": false, "costs": [{"linear": 1}]})")
                         .draw_world(0, 0);
  for (int m = 0; m < kMicrobatches; ++m) {
    const double factor = static_cast<double>(at(world, 2, kF, m)) / (10 * kMs);
    const auto sent = static_cast<std::size_t>(world.program.task_id(2, kF, m));
    EXPECT_NEAR(static_cast<double>(world.network.message_bytes[sent]), 1000 * factor, 1);
    EXPECT_NEAR(static_cast<double>(expected_at(world, 2, kF, m)), 20 * kMs, 0.3 * kMs);
  }
}

TEST(VariabilityDraws, WavesFollowTheClock) {
  const ScenarioResolver resolver =
      resolver_of(R"({"model": "wave", "on": "compute", "amplitude": 0.01, "period_s": 86400})",
                  R"(, "iteration_spacing_s": 3600)");
  for (int hour = 0; hour < 48; ++hour) {
    EXPECT_NEAR(static_cast<double>(at(resolver.draw_world(hour, 0), 0, kF, 0)),
                10 * kMs * (1 + 0.01 * std::sin(2 * M_PI * hour / 24)), 50);
  }
}

}  // namespace
}  // namespace rrfp
