// Goal: every preset draws what its source states: means, spreads, tails, probabilities, and what
// is shared with what. Tolerances are four standard errors where not said otherwise.
#include "traces/preset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>

#include "traces/line_source.h"
#include "traces/scenario_file.h"
#include "traces/scenario_resolve.h"
#include "traces/time_axis.h"

namespace rrfp {
namespace {

struct Shape {
  int ranks = 4;
  int microbatches = 64;
  bool split = false;
  int replicas = 2;
  std::string more{};  // members of the scenario
};

std::string text_of(const std::string& variability, const Shape& shape) {
  return R"({"schema": "rrfp.scenario/1", "seed": 11, "iterations": 10000000,
    "pipeline": {"ranks": )" +
         std::to_string(shape.ranks) + R"(, "microbatches": )" +
         std::to_string(shape.microbatches) +
         (shape.split ? R"(, "split_backward": true}, "durations": {"forward_ms": 10,
            "input_gradient_ms": 12, "weight_gradient_ms": 8})"
                      : R"(}, "durations": {"forward_ms": 10, "backward_ms": 20})") +
         R"(, "data_parallel": {"replicas": )" + std::to_string(shape.replicas) +
         R"(}, "network": {"latency_ms": 1, "activation_bytes": 1000000,
            "bandwidth_bytes_per_second": 1000000000}, "variability": )" +
         variability + shape.more + R"(, "policies": [{"name": "bf"}]})";
}

Result<Scenario> read(const std::string& variability, const Shape& shape = {}) {
  const Result<JsonDocument> document = parse_json(text_of(variability, shape), "s.json");
  if (!document.ok()) return document.error();
  return read_scenario(*document);
}

ScenarioResolver resolver_of(const std::string& variability, const Shape& shape = {}) {
  Result<Scenario> scenario = read(variability, shape);
  EXPECT_TRUE(scenario.ok()) << (scenario.ok() ? "" : scenario.error().message);
  return *ScenarioResolver::create(*std::move(scenario));
}

// Factors on the base durations of the shape above.
double factor(const Case& world, int stage, Slot slot, int m) {
  const bool split = world.program.split_backward();
  const double base_ms = slot == Slot::kForward ? 10 : slot == Slot::kWeight ? 8 : split ? 12 : 20;
  const TaskId id = world.program.task_id(stage, slot, m);
  return static_cast<double>(world.duration_ns[static_cast<std::size_t>(id)]) / base_ms / 1e6;
}

constexpr Slot kF = Slot::kForward;
constexpr Slot kB = Slot::kBackward;
constexpr Slot kW = Slot::kWeight;

// Latencies of all messages over 1 ms of base latency; a transfer's base is 2 ms.
std::vector<double> extra_ms(const Case& world) {
  std::vector<double> out;
  for (const auto& edge : world.network.latency_ns) {
    for (const std::int64_t ns : edge) out.push_back(static_cast<double>(ns) / 1e6 - 1);
  }
  return out;
}

struct Sample {
  std::vector<double> values;

  double mean() const {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  double sd() const {
    const double center = mean();
    double sum = 0;
    for (const double value : values) sum += (value - center) * (value - center);
    return std::sqrt(sum / static_cast<double>(values.size()));
  }
  double quantile(double p) const {
    std::vector<double> sorted = values;
    const auto place = static_cast<std::ptrdiff_t>(p * static_cast<double>(values.size() - 1));
    std::nth_element(sorted.begin(), sorted.begin() + place, sorted.end());
    return sorted[static_cast<std::size_t>(place)];
  }
  double share(const std::function<bool(double)>& those) const {
    return static_cast<double>(std::count_if(values.begin(), values.end(), those)) /
           static_cast<double>(values.size());
  }
};

double correlation(const Sample& a, const Sample& b) {
  const double mean_a = a.mean();
  const double mean_b = b.mean();
  double sum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    sum += (a.values[i] - mean_a) * (b.values[i] - mean_b);
  }
  return sum / static_cast<double>(a.values.size()) / a.sd() / b.sd();
}

// Both replicas of `iterations` worlds.
void for_worlds(const ScenarioResolver& resolver, int iterations,
                const std::function<void(const Case&, int iteration, int replica)>& see) {
  const int replicas = resolver.scenario().data_parallel.replicas;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (int replica = 0; replica < replicas; ++replica) {
      see(resolver.draw_world(iteration, replica), iteration, replica);
    }
  }
}

TEST(Preset, IdealIsExact) {
  for_worlds(resolver_of(R"(["ideal"])"), 3, [](const Case& world, int, int) {
    EXPECT_EQ(factor(world, 2, kF, 5), 1);
    EXPECT_TRUE(world.expected_ns.empty());
  });
}

TEST(Preset, HealthyDedicated) {
  Sample operations;
  Sample transfers;
  for_worlds(resolver_of(R"(["healthy-dedicated"])"), 250, [&](const Case& world, int, int) {
    for (int stage = 0; stage < 4; ++stage) {
      for (int m = 0; m < 64; ++m) operations.values.push_back(factor(world, stage, kF, m));
    }
    for (const double ms : extra_ms(world)) transfers.values.push_back((2 + ms) / 2);
  });
  EXPECT_NEAR(operations.mean(), 1, 0.001);
  EXPECT_NEAR(operations.quantile(0.5), 1, 0.0005);
  // sd .016, less what is cut off; the slow ones add .0039^2.
  EXPECT_NEAR(operations.sd(), 0.0163, 0.0006);
  EXPECT_GE(operations.quantile(0), 0.95);
  EXPECT_LE(operations.quantile(1), 1.2);
  const double slow = operations.share([](double f) { return f > 1.04; });
  EXPECT_NEAR(slow, 1e-3, 4 * std::sqrt(1e-3 / 128'000));
  EXPECT_NEAR(transfers.mean(), 1, 0.002);
  EXPECT_NEAR((transfers.quantile(0.841) - transfers.quantile(0.159)) / 2, 0.018, 0.0005);
  EXPECT_NEAR(transfers.quantile(0.999), 1.34, 0.05);
}

TEST(Preset, HealthyNoisy) {
  Sample operations;
  double first = 0;
  double steps = 0;
  constexpr int kIterations = 6000;
  for_worlds(resolver_of(R"(["healthy-noisy"])", {.microbatches = 4}), kIterations,
             [&](const Case& world, int, int replica) {
               Sample of_step;
               for (int stage = 0; stage < 4; ++stage) {
                 first += factor(world, stage, kF, 0) > 3;
                 for (int m = 1; m < 4; ++m) of_step.values.push_back(factor(world, stage, kB, m));
               }
               const double mean = of_step.mean();
               if (replica == 0) steps += mean > 1.075;
               if (mean < 1.075) {
                 operations.values.insert(operations.values.end(), of_step.values.begin(),
                                          of_step.values.end());
               }
             });
  EXPECT_NEAR(operations.mean(), 1, 0.001);
  EXPECT_NEAR(operations.sd(), 0.05, 0.001);
  const double firsts = 2 * kIterations * 4;
  EXPECT_NEAR(first / firsts, 0.0012, 4 * std::sqrt(0.0012 / firsts));
  EXPECT_NEAR(steps / kIterations, 0.02, 4 * std::sqrt(0.02 / kIterations));
}

// What a step or a wave scales is said, and is all that it scales.
TEST(Preset, SlowStepsAndWavesAreOnComputationAlone) {
  const std::pair<const char*, const char*> presets[] = {
      {"healthy-noisy", R"([{"preset": "healthy-noisy", "step_probability": 1, "cv": 0}])"},
      {"diurnal-thermal", R"([{"preset": "diurnal-thermal", "amplitude": 1}])"}};
  for (const auto& [name, entry] : presets) {
    const Case world =
        resolver_of(entry, {.more = R"(, "iteration_spacing_s": 21600)"}).draw_world(1, 0);
    EXPECT_GE(factor(world, 0, kF, 1), 1.1) << name;
    for (const double extra : extra_ms(world)) ASSERT_EQ(extra, 0) << name;
    const std::string scope(find_preset(name)->scope);
    EXPECT_NE(scope.find("Messages, gradient synchronisation and optimizer keep their times"),
              std::string::npos)
        << name;
  }
}

TEST(Preset, GpuSpreadIsOfTheDeviceAndForTheJob) {
  const ScenarioResolver resolver =
      resolver_of(R"(["gpu-spread"])", {.ranks = 256, .microbatches = 1, .replicas = 64});
  Sample devices;
  for (int replica = 0; replica < 64; ++replica) {
    const Case world = resolver.draw_world(0, replica);
    const Case later = resolver.draw_world(99, replica);
    for (int rank = 0; rank < 256; ++rank) {
      devices.values.push_back(factor(world, rank, kF, 0));
      ASSERT_EQ(factor(world, rank, kF, 0), factor(later, rank, kF, 0));
      ASSERT_NEAR(factor(world, rank, kF, 0), factor(world, rank, kB, 0), 1e-6);
    }
  }
  EXPECT_NEAR(devices.mean(), 0.97 + 0.03 * 1.125, 0.002);
  EXPECT_NEAR(devices.quantile(0.5), 1.0006, 0.001);
  // Beyond 1.08, four standard deviations: .12 / .15 of the slow ones.
  EXPECT_NEAR(devices.share([](double f) { return f > 1.08; }), 0.03 * 0.8, 0.005);
}

TEST(Preset, OneIsSlow) {
  const Case lemon =
      resolver_of(R"([{"preset": "lemon-gpu", "rank": 2, "replica": 1}])").draw_world(5, 1);
  EXPECT_NEAR(factor(lemon, 2, kF, 3), 2.2, 1e-9);
  EXPECT_NEAR(factor(lemon, 2, kB, 3), 2.2, 1e-9);
  EXPECT_EQ(factor(lemon, 1, kF, 3), 1);
  EXPECT_TRUE(lemon.expected_ns.empty()) << "a profile shows it";

  const ScenarioResolver slow = resolver_of(
      R"(["healthy-dedicated", {"preset": "slow-worker", "rank": 3}])", {.split = true});
  Sample forwards;
  Sample weights;
  Sample links;
  Sample others;
  for_worlds(slow, 20, [&](const Case& world, int, int replica) {
    for (int m = 0; m < 64; ++m) {
      (replica == 0 ? forwards : others).values.push_back(factor(world, 3, kF, m));
      if (replica == 0) weights.values.push_back(factor(world, 3, kW, m));
      others.values.push_back(factor(world, 2, kB, m));
    }
    if (replica != 0) return;
    const EdgeId edge = world.program.find_edge(Kind::kForward, 2, 3);
    for (const std::int64_t ns : world.network.latency_ns[static_cast<std::size_t>(edge)]) {
      links.values.push_back((static_cast<double>(ns) / 1e6 + 1) / 2);
    }
  });
  EXPECT_NEAR(forwards.mean(), 2.5, 0.01);
  EXPECT_NEAR(weights.mean(), 2.3, 0.01);
  // Of the transmission the factors add up on the latency: 3.24 f on both parts.
  EXPECT_NEAR(links.mean(), 3.24, 0.02);
  EXPECT_NEAR(others.mean(), 1, 0.002);
}

TEST(Preset, SlowHostsAreOneInTwoHundred) {
  const ScenarioResolver resolver = resolver_of(R"([{"preset": "slow-host", "ranks_per_host": 2}])",
                                                {.ranks = 512, .microbatches = 1, .replicas = 64});
  int slow = 0;
  for (int replica = 0; replica < 64; ++replica) {
    const Case world = resolver.draw_world(0, replica);
    for (int rank = 0; rank < 512; rank += 2) {
      ASSERT_EQ(factor(world, rank, kF, 0), factor(world, rank + 1, kF, 0));
      const bool one = std::fabs(factor(world, rank, kF, 0) - 1.1) < 1e-9;
      slow += one;
      ASSERT_TRUE(one || factor(world, rank, kF, 0) == 1);
    }
  }
  EXPECT_NEAR(slow / 16384.0, 0.005, 4 * std::sqrt(0.005 / 16384));
}

TEST(Preset, DiurnalThermal) {
  const ScenarioResolver resolver =
      resolver_of(R"([{"preset": "diurnal-thermal", "rank": 1}])",
                  {.microbatches = 1, .more = R"(, "iteration_spacing_s": 3600)"});
  const double hot = factor(resolver.draw_world(0, 0), 1, kF, 0);
  EXPECT_GE(hot, 1);
  EXPECT_LE(hot, 1.06);
  for (int hour = 0; hour < 24; ++hour) {
    const Case world = resolver.draw_world(hour, 0);
    const double wave = 1 + 0.01 * std::sin(2 * M_PI * hour / 24);
    EXPECT_NEAR(factor(world, 0, kF, 0), wave, 1e-6);
    EXPECT_NEAR(factor(world, 1, kF, 0), wave * hot, 1e-4);
  }
}

TEST(Preset, HeavyLastStage) {
  const Case world = resolver_of(R"(["heavy-last-stage"])", {.split = true}).draw_world(0, 1);
  EXPECT_NEAR(factor(world, 3, kF, 0), 2.08, 1e-6);
  EXPECT_NEAR(factor(world, 3, kB, 0), 1.42, 1e-6);
  EXPECT_NEAR(factor(world, 3, kW, 0), 1.42, 1e-6);
  EXPECT_EQ(factor(world, 2, kF, 0), 1);
}

// s ~ Beta(.257, 1.067) has mean .1941 and standard deviation .2595.
TEST(Preset, SeqlenLongtail) {
  Sample forwards;
  Sample backwards;
  Sample elsewhere;
  for_worlds(resolver_of(R"(["healthy-dedicated", "seqlen-longtail"])"), 200,
             [&](const Case& world, int, int) {
               for (int m = 0; m < 64; ++m) {
                 forwards.values.push_back(factor(world, 0, kF, m));
                 backwards.values.push_back(factor(world, 0, kB, m));
                 elsewhere.values.push_back(factor(world, 3, kF, m));
               }
             });
  EXPECT_NEAR(forwards.mean(), 0.89 + 1.14 * 0.1941, 0.008);
  EXPECT_NEAR(forwards.sd(), 1.14 * 0.2595, 0.008);
  EXPECT_NEAR(backwards.mean(), 0.87 + 2.01 * 0.1941, 0.014);
  EXPECT_GE(correlation(forwards, backwards), 0.99);
  EXPECT_GE(correlation(forwards, elsewhere), 0.996) << "across stages";

  // Split: W keeps to its part, and I + W is the whole backward.
  const Case split = resolver_of(R"(["seqlen-longtail"])", {.split = true}).draw_world(0, 0);
  for (int m = 0; m < 64; ++m) {
    EXPECT_NEAR(factor(split, 1, kW, m), 0.87, 1e-6);
    const double s = (factor(split, 1, kF, m) - 0.89) / 1.14;
    EXPECT_NEAR((12 * factor(split, 1, kB, m) + 8 * factor(split, 1, kW, m)) / 20, 0.87 + 2.01 * s,
                1e-6);
  }
  EXPECT_TRUE(split.expected_ns.empty()) << "lengths are known beforehand";
}

TEST(Preset, SeqlenEmpirical) {
  Sample forwards;
  for_worlds(resolver_of(R"(["seqlen-empirical"])", {.split = true}), 50,
             [&](const Case& world, int, int) {
               for (int m = 0; m < 64; ++m) {
                 const double f = factor(world, 0, kF, m);
                 forwards.values.push_back(f);
                 ASSERT_EQ(factor(world, 0, kW, m), 1) << "all microbatches are full";
                 ASSERT_NEAR((12 * factor(world, 2, kB, m) + 8) / 20, f, 1e-6);
               }
             });
  EXPECT_GT(forwards.quantile(0), 0.5);
  EXPECT_LE(forwards.quantile(1), 1);
  // Mean length 1155 of 8192 tokens: squares are a small part, and vary.
  EXPECT_NEAR(forwards.mean(), 0.63, 0.05);
  EXPECT_GT(forwards.sd(), 0.03);
}

// Lengths as the preset draws them against the public data set, out to the tail: attention goes
// with the square.
TEST(Preset, SeqlenEmpiricalHasTheMomentsOfItsData) {
  const std::string file = RRFP_SHARED_DIR "/data/lengths/AzureLLMInferenceTrace_conv.csv.gz";
  Result<LineSource> source = LineSource::open(file);
  if (!source.ok()) GTEST_SKIP() << source.error().message;
  Sample data;
  std::string_view line;
  while (*source->next(&line)) {
    const std::string text(line.substr(std::min(line.find(','), line.size() - 1) + 1));
    if (std::isdigit(static_cast<unsigned char>(text[0])) != 0) {
      data.values.push_back(std::atof(text.c_str()));
    }
  }
  ASSERT_EQ(data.values.size(), 19366U);

  const Result<Scenario> scenario = read(R"(["seqlen-empirical"])");
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  const Sampler length(std::get<MicrobatchLengths>(scenario->variability[0]).length);
  Sample drawn;
  constexpr int kCount = 200'000;
  for (int i = 0; i < kCount; ++i) {
    drawn.values.push_back(length.at(static_cast<std::uint64_t>((i + 0.5) / kCount * 0x1p64)));
  }
  const auto square = [](const Sample& of) { return of.mean() * of.mean() + of.sd() * of.sd(); };
  EXPECT_NEAR(drawn.mean(), data.mean(), 0.002 * data.mean());
  EXPECT_NEAR(square(drawn), square(data), 0.005 * square(data));
  for (const double p : {0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.995, 0.999}) {
    EXPECT_NEAR(drawn.quantile(p), data.quantile(p), 0.02 * data.quantile(p)) << "at " << p;
  }
}

// The heaviest of 64 microbatches over the lightest, where the encoder is as heavy per image as the
// language model.
TEST(Preset, MmEncoderBurst) {
  Sample ratios;
  Sample encoder;
  for_worlds(resolver_of(R"(["mm-encoder-burst"])"), 100, [&](const Case& world, int, int) {
    double heaviest = 0;
    double lightest = 1e9;
    for (int m = 0; m < 64; ++m) {
      // A mean microbatch has 4 images and text worth 8.
      const double cost = 4 * factor(world, 0, kF, m) + 12 * factor(world, 1, kF, m);
      heaviest = std::max(heaviest, cost);
      lightest = std::min(lightest, cost);
      encoder.values.push_back(factor(world, 0, kF, m));
      ASSERT_EQ(factor(world, 1, kF, m), factor(world, 3, kF, m));
    }
    ratios.values.push_back(heaviest / lightest);
  });
  EXPECT_NEAR(ratios.mean(), 4.15, 0.25);
  EXPECT_NEAR(encoder.mean(), 1, 0.03);
  EXPECT_NEAR(encoder.share([](double f) { return f < 0.01; }), std::pow(0.5, 4), 0.01);
}

TEST(Preset, MoeSkew) {
  Sample loads;
  Sample backwards;
  Sample elsewhere;
  for_worlds(resolver_of(R"([{"preset": "moe-skew", "expert_share": 0.5}])"), 100,
             [&](const Case& world, int, int) {
               for (int m = 0; m < 64; ++m) {
                 loads.values.push_back(1 + (factor(world, 0, kF, m) - 1) / 0.5);
                 backwards.values.push_back(factor(world, 0, kB, m));
                 elsewhere.values.push_back(factor(world, 1, kF, m));
               }
             });
  EXPECT_NEAR(loads.quantile(0), 1.3, 0.01);
  EXPECT_NEAR(loads.quantile(0.5), 1.8, 0.02);
  EXPECT_NEAR(loads.quantile(1), 2.9, 0.01);
  EXPECT_NEAR(correlation(loads, backwards), 1, 1e-6);
  EXPECT_NEAR(correlation(loads, elsewhere), 0, 0.04);
}

TEST(Preset, LinkDegradedStatic) {
  const ScenarioResolver resolver =
      resolver_of(R"([{"preset": "link-degraded-static", "link": [2, 1], "delay_ms": 60}])");
  for (const int iteration : {6, 7, 500}) {
    const Case world = resolver.draw_world(iteration, 0);
    for (std::size_t id = 0; id < world.network.latency_ns.size(); ++id) {
      const Edge& edge = world.program.edges()[id];
      const bool slow = iteration >= 7 && std::min(edge.from, edge.to) == 1;
      EXPECT_EQ(world.network.latency_ns[id],
                std::vector<std::int64_t>(64, slow ? 61'000'000 : 1'000'000));
    }
  }
}

TEST(Preset, LinkDegradedDynamic) {
  Sample delays;
  double messages = 0;
  for_worlds(resolver_of(R"(["link-degraded-dynamic"])"), 150, [&](const Case& world, int, int) {
    for (const double ms : extra_ms(world)) {
      ++messages;
      if (ms != 0) delays.values.push_back(ms);
    }
  });
  EXPECT_NEAR(static_cast<double>(delays.values.size()) / messages, 2 / 6.0, 0.02);
  EXPECT_NEAR(delays.mean(), 30, 0.7);
  EXPECT_NEAR(delays.sd(), 10, 0.7);
  EXPECT_GE(delays.quantile(0), 0);
}

TEST(Preset, FabricCongested) {
  Sample factors;
  const auto see = [&](const Case& world, int, int) {
    for (const double ms : extra_ms(world)) factors.values.push_back((2 + ms) / 2);
  };
  for_worlds(resolver_of(R"([{"preset": "fabric-congested", "bandwidth": 1}])"), 400, see);
  EXPECT_NEAR(std::log(factors.quantile(0.841) / factors.quantile(0.159)) / 2, 0.08, 0.003);
  const auto count = static_cast<double>(factors.values.size());
  EXPECT_NEAR(factors.share([](double f) { return f > 1.6 && f < 4; }), 0.01,
              4 * std::sqrt(0.01 / count));
  EXPECT_NEAR(factors.share([](double f) { return f > 5; }), 0.001, 4 * std::sqrt(0.001 / count));

  // A tenth of the time 1 ms of transmission takes 1 / .7.
  Sample crowded;
  for_worlds(resolver_of(R"([{"preset": "fabric-congested", "sigma": 0, "slow_probability": 0,
                              "stuck_probability": 0}])",
                         {.more = R"(, "iteration_spacing_s": 100)"}),
             2000, [&](const Case& world, int, int replica) {
               if (replica == 0) crowded.values.push_back(extra_ms(world).front());
             });
  EXPECT_NEAR(crowded.quantile(1), 1 / 0.7 - 1, 1e-6);
  EXPECT_NEAR(crowded.share([](double ms) { return ms > 0.1; }), 0.1, 0.03);
}

// With many microbatches the job is as slow as its slowest rank.
TEST(Preset, FailslowEpisode) {
  Sample slowdowns;
  for_worlds(resolver_of(R"(["failslow-episode"])",
                         {.microbatches = 1, .more = R"(, "iteration_spacing_s": 5000)"}),
             8000, [&](const Case& world, int iteration, int replica) {
               double slowest = 1;
               int slow = 0;
               for (int stage = 0; stage < 4; ++stage) {
                 const double f = factor(world, stage, kF, 0);
                 slowest = std::max(slowest, f);
                 slow += f > 1;
               }
               ASSERT_LE(slow, 1);
               if (replica == 0) slowdowns.values.push_back(slowest);
               if (replica == 1) {
                 double& job = slowdowns.values[static_cast<std::size_t>(iteration)];
                 ASSERT_TRUE(job == 1 || slowest == 1) << "one device of all replicas";
                 job = std::max(job, slowest);
               }
             });
  EXPECT_NEAR(slowdowns.mean(), 1.34, 0.03);
}

TEST(Preset, LinkFlap) {
  Sample waits;
  for_worlds(resolver_of(R"([{"preset": "link-flap", "quiet_s": 0}])",
                         {.more = R"(, "iteration_spacing_s": 7)"}),
             1500, [&](const Case& world, int, int) {
               for (const double ms : extra_ms(world)) waits.values.push_back(ms / 1e3);
             });
  EXPECT_LE(waits.quantile(1), 3);
  // One of six pairs is down 1.75 s in about 17.
  EXPECT_NEAR(waits.share([](double s) { return s > 0; }), 1.75 / 17 / 6, 0.004);
  EXPECT_GT(waits.quantile(0.9999), 1);
}

TEST(Preset, GarbageCollection) {
  for (const bool planned : {true, false}) {
    const ScenarioResolver resolver =
        resolver_of(planned ? R"(["gc-planned"])" : R"(["gc-staggered"])", {.microbatches = 2});
    std::vector<int> steps;
    int alone = 0;
    for (int iteration = 0; iteration < 2000; ++iteration) {
      const Case world = resolver.draw_world(iteration, 0);
      int pauses = 0;
      for (int stage = 0; stage < 4; ++stage) {
        pauses += std::fabs(factor(world, stage, kF, 0) - 146) < 1e-6;
        ASSERT_EQ(factor(world, stage, kF, 1), 1);
      }
      if (std::fabs(factor(world, 0, kF, 0) - 146) < 1e-6) steps.push_back(iteration);
      alone += pauses == 1;
      ASSERT_TRUE(!planned || pauses == 0 || pauses == 4);
    }
    ASSERT_GE(steps.size(), 7U);
    for (std::size_t i = 1; i < steps.size(); ++i) EXPECT_NEAR(steps[i] - steps[i - 1], 265, 7);
    EXPECT_GE(alone, planned ? 0 : 20);
  }
}

TEST(Preset, DataloaderStall) {
  const ScenarioResolver resolver = resolver_of(R"(["dataloader-stall"])", {.microbatches = 2});
  const auto step_ns =
      static_cast<double>(TimeAxis(resolver.scenario(), resolver.program()).iteration_ns());
  Sample waits;
  for_worlds(resolver, 20'000, [&](const Case& world, int, int) {
    waits.values.push_back(static_cast<double>(world.input_ready_ns[0]) / step_ns);
    ASSERT_EQ(world.input_ready_ns[0], world.input_ready_ns[1]);
  });
  const double wait = waits.share([](double w) { return w > 0 && w < 50; });
  EXPECT_NEAR(wait, 0.25, 4 * std::sqrt(0.25 * 0.75 / 40'000));
  EXPECT_LE(waits.share([](double w) { return w > 50; }), 3e-5 + 4 * std::sqrt(3e-5 / 40'000));
  Sample some = waits;
  std::erase_if(some.values, [](double w) { return w == 0 || w > 50; });
  EXPECT_NEAR(some.mean(), 0.5, 0.01);
}

TEST(Preset, NamesAndModelsAreKept) {
  const Result<Scenario> scenario =
      read(R"(["healthy-dedicated", {"preset": "dataloader-stall", "known": false},
               {"preset": "slow-worker", "rank": 3, "known": false}, "healthy-dedicated"])");
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  EXPECT_EQ(describe_presets(*scenario),
            "healthy-dedicated, dataloader-stall (modelled), slow-worker");
  EXPECT_FALSE(std::get<DrawModel>(scenario->variability[3]).known);
  const std::string text = to_text(scenario_to_json(*scenario), JsonLayout::kReadable);
  const Result<Scenario> again = read_scenario(*parse_json(text, "resolved.json"));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->variability, scenario->variability);
  EXPECT_EQ(describe_presets(*again), describe_presets(*scenario));
}

TEST(Preset, TellsWhatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"(["slow-workr"])",
       "s.json: /variability/0: there is no preset \"slow-workr\"; did you mean \"slow-worker\"?"},
      {R"([{"preset": "slowworker"}])", "/variability/0/preset: there is no preset"},
      {R"([{"preset": "slow-worker", "rnk": 3}])", "did you mean \"rank\"?"},
      {R"([{"preset": "slow-worker", "rank": 4}])",
       "/variability/0/rank: found 4; expected an integer from 0 to 3"},
      {R"([{"preset": "slow-worker", "replica": 2}])", "expected an integer from 0 to 1"},
      {R"([{"preset": "slow-worker", "forward_factor": 0.5}])", "expected a number from 1"},
      {R"([{"preset": "failslow-episode", "shortest_s": 0.001, "longest_s": 0.001,
            "time_share": 0.999}, {"model": "factor", "on": "compute", "value": 2,
            "episodes": {"on_ns": 1, "off_ns": 0}}])",
       "/variability/1/episodes: an iteration of"},
      {R"([{"preset": "lemon-gpu", "factor": "2"}])", "expected a number from 1 to 1000"},
      {R"([{"preset": "lemon-gpu", "factor": 0.5}])", "expected a number from 1 to 1000"},
      {R"([{"preset": "mm-encoder-burst", "one_more": 1}])", "expected a number from 0 to 0.99"},
      {R"([{"preset": "seqlen-empirical", "tokens": 1e12}])", "more than 10000 sequences"},
      {R"([{"preset": "healthy-dedicated", "slow_probability": 2}])",
       "expected a number from 0 to 1"},
      {R"([{"preset": "link-degraded-static", "link": [0, 3]}])",
       "no message goes from rank 0 to rank 3"},
      {R"([{"preset": "seqlen-empirical", "file": "/nowhere.csv"}])", "/nowhere.csv"},
      {R"([{"preset": "mm-encoder-burst", "encoder_stages": 4}])", "left for language"},
      {R"([{"preset": "gc-planned", "every": 5}])", "\"spread\" must be less than \"every\""},
      {R"([{"preset": "ideal", "known": 1}])", "expected true or false"},
  };
  for (const auto& [entries, expected] : wrong) {
    const Result<Scenario> scenario = read(entries);
    ASSERT_FALSE(scenario.ok()) << entries;
    EXPECT_NE(scenario.error().message.find(expected), std::string::npos)
        << scenario.error().message;
  }
  // I is 0.6 of the backward and has all its attention.
  const std::string heavy = R"([{"preset": "seqlen-empirical", "attention_share": 0.8}])";
  EXPECT_TRUE(read(heavy).ok());
  const Result<Scenario> split = read(heavy, {.split = true});
  ASSERT_FALSE(split.ok());
  EXPECT_NE(split.error().message.find("is only 60 % of it; give \"attention_share\": 0.6 or less"),
            std::string::npos)
      << split.error().message;
  const Result<Scenario> alone = read(R"(["link-degraded-static"])", {.ranks = 1});
  ASSERT_FALSE(alone.ok());
  EXPECT_NE(alone.error().message.find("there is no link"), std::string::npos);
}

}  // namespace
}  // namespace rrfp
