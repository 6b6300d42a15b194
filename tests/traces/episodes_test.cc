// Goal: episodes come and last as they are said to, hit as many as they are said to, are the same
// whichever stretch of time is asked for, and reach the tasks and messages of their time.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "traces/episode_timeline.h"
#include "traces/scenario_file.h"
#include "traces/scenario_resolve.h"
#include "traces/time_axis.h"

namespace rrfp {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Episodes seconds(const Distribution& on, const Distribution& off) {
  Episodes episodes;
  episodes.on_ns = scaled(on, 1e9);
  episodes.off_ns = scaled(off, 1e9);
  episodes.rest_ns = FixedValue{0};
  return episodes;
}

TEST(Episodes, LastAndReturnAsSaid) {
  const EpisodeTimeline timeline(seconds(Uniform{0.5, 3}, Uniform{5, 30}), 1, 1, 1);
  const std::vector<Episode> all = timeline.overlapping(0, 20'000 * kSecond);
  ASSERT_GT(all.size(), 900U);
  double on = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double length = static_cast<double>(all[i].end_ns - all[i].begin_ns) / 1e9;
    const double quiet = static_cast<double>(all[i].begin_ns - all[i - 1].end_ns) / 1e9;
    // At the joint of two eras an episode or a quiet time can be cut.
    if (i + 1 < all.size()) on += length;
    ASSERT_LE(length, 3.001);
    ASSERT_LE(quiet, 60);
  }
  EXPECT_NEAR(on / 20'000, 1.75 / 19.25, 0.004);
  EXPECT_NEAR(timeline.share(), 1.75 / 19.25, 1e-9);
}

TEST(Episodes, AreTheSameWhateverIsAskedFor) {
  const EpisodeTimeline timeline(seconds(Exponential{2}, Exponential{3}), 1, 9, 4);
  const std::vector<Episode> all = timeline.overlapping(0, 20'000 * kSecond);
  for (int i = 0; i < 2000; i += 7) {
    const std::int64_t from = i * 10 * kSecond;
    std::vector<std::uint64_t> numbers;
    for (const Episode& episode : timeline.overlapping(from, from + kSecond)) {
      EXPECT_LT(episode.begin_ns, from + kSecond);
      EXPECT_GT(episode.end_ns, from);
      numbers.push_back(episode.number);
    }
    std::vector<std::uint64_t> expected;
    for (const Episode& episode : all) {
      if (episode.begin_ns < from + kSecond && episode.end_ns > from) {
        expected.push_back(episode.number);
      }
    }
    ASSERT_EQ(numbers, expected) << "at " << i * 10 << " s";
  }
}

TEST(Episodes, RestAfterTheirCycles) {
  Episodes episodes = seconds(FixedValue{1}, FixedValue{10});
  episodes.least_cycles = 3;
  episodes.most_cycles = 10;
  episodes.rest_ns = FixedValue{1000e9};
  const EpisodeTimeline timeline(episodes, 1, 2, 3);
  std::int64_t before = -1;
  int run = 0;
  std::map<int, int> runs;
  for (const Episode& episode : timeline.overlapping(0, 300'000 * kSecond)) {
    if (before >= 0 && episode.begin_ns - before > 500 * kSecond) {
      ++runs[run];
      run = 0;
    }
    ++run;
    before = episode.end_ns;
  }
  ASSERT_GE(runs.size(), 6U);
  EXPECT_LE(runs.rbegin()->first, 10);
  int below = 0;
  for (const auto& [length, count] : runs) below += length < 3 ? count : 0;
  EXPECT_LE(below, 1) << "but for the one in which the job begins";
}

TEST(Episodes, HitSoManyDifferentOnes) {
  Episodes episodes = seconds(Uniform{0.05, 0.1}, FixedValue{0});
  episodes.element = EpisodeElement::kLinkPair;
  episodes.least_hit = 1;
  episodes.most_hit = 3;
  const EpisodeTimeline timeline(episodes, 7, 1, 1);
  std::map<std::size_t, int> counts;
  std::vector<int> hits(7);
  const std::vector<Episode> all = timeline.overlapping(0, 600 * kSecond);
  for (const Episode& episode : all) {
    ++counts[episode.hit.size()];
    EXPECT_EQ(std::set<int>(episode.hit.begin(), episode.hit.end()).size(), episode.hit.size());
    for (const int one : episode.hit) ++hits[static_cast<std::size_t>(one)];
  }
  ASSERT_GT(all.size(), 7000U);
  for (std::size_t n = 1; n <= 3; ++n) {
    EXPECT_NEAR(counts[n] / static_cast<double>(all.size()), 1 / 3.0, 0.025);
  }
  for (const int count : hits) {
    EXPECT_NEAR(count / static_cast<double>(all.size()), 2 / 7.0, 0.025);
  }
  EXPECT_NEAR(timeline.share(), 2 / 7.0, 1e-9);
}

Scenario scenario_of(const std::string& models, const std::string& more = "") {
  const std::string text = R"({"schema": "rrfp.scenario/1", "seed": 3, "iterations": 2000,
    "pipeline": {"ranks": 4, "microbatches": 16},
    "durations": {"forward_ms": 10, "backward_ms": 20}, "data_parallel": {"replicas": 2},
    "network": {"latency_us": 100}, "variability": [)" +
                           models + "]" + more + R"(, "policies": [{"name": "bf"}]})";
  return *read_scenario(*parse_json(text, "s.json"));
}

// (M - 1) intervals of 30 ms, 4 forwards and 4 backwards, and 3 messages each way.
TEST(TimeAxis, IsThatOf1f1bWithNothingInTheWay) {
  const Scenario scenario = scenario_of("");
  const ScenarioResolver resolver = *ScenarioResolver::create(scenario);
  const TimeAxis axis(scenario, resolver.program());
  EXPECT_EQ(axis.iteration_ns(), 15 * 30'000'000LL + 4 * 30'000'000LL + 6 * 100'000);
  EXPECT_EQ(axis.start_ns(3), 3 * axis.iteration_ns());
  EXPECT_EQ(axis.task_start_ns(2, Slot::kForward, 5), 5 * 30'000'000LL + 2 * 10'100'000);
  EXPECT_EQ(axis.task_end_ns(0, Slot::kBackward, 15), axis.iteration_ns());
}

TEST(Episodes, DelayTheLinksTheyHit) {
  const Scenario scenario = scenario_of(R"({"model": "extra", "on": "latency", "scope": "link",
      "extra_ms": {"normal": {"mean": 30, "sd": 10, "min": 0}},
      "episodes": {"on_ms": {"uniform": [50, 100]}, "off_ms": 0, "hit": "link", "count": [1, 3]}})");
  const ScenarioResolver resolver = *ScenarioResolver::create(scenario);
  double delayed = 0;
  double messages = 0;
  double sum_ms = 0;
  for (int iteration = 0; iteration < 400; ++iteration) {
    for (int replica = 0; replica < 2; ++replica) {
      const Case world = resolver.draw_world(iteration, replica);
      for (const auto& edge : world.network.latency_ns) {
        for (const std::int64_t ns : edge) {
          ++messages;
          if (ns == 100'000) continue;
          ++delayed;
          sum_ms += static_cast<double>(ns - 100'000) / 1e6;
        }
      }
    }
  }
  // 2 of the 6 pairs of ranks in two replicas, on average.
  EXPECT_NEAR(delayed / messages, 2.0 / 6, 0.01);
  EXPECT_NEAR(sum_ms / delayed, 30, 0.5);
  const Case world = resolver.draw_world(0, 0);
  EXPECT_NEAR(static_cast<double>(world.network.expected_latency_ns[0][0]), 100'000 + 10e6, 2e4);
}

// While the link is down nothing passes; what was sent then comes when it is up again.
TEST(Episodes, HeldMessagesComeAtTheEnd) {
  const Scenario scenario = scenario_of(R"({"model": "hold", "on": "latency",
      "episodes": {"on_ms": 200, "off_ms": 300}})");
  const ScenarioResolver resolver = *ScenarioResolver::create(scenario);
  const TimeAxis axis(scenario, resolver.program());
  std::set<std::int64_t> ends_ms;
  int held = 0;
  for (int iteration = 0; iteration < 3; ++iteration) {
    const Case world = resolver.draw_world(iteration, 0);
    for (int m = 0; m < 16; ++m) {
      const std::int64_t wait = world.network.latency_ns[0][static_cast<std::size_t>(m)] - 100'000;
      ASSERT_GE(wait, 0);
      ASSERT_LE(wait, 200'000'000);
      if (wait == 0) continue;
      ++held;
      ends_ms.insert((axis.start_ns(iteration) + axis.task_end_ns(0, Slot::kForward, m) + wait) /
                     1'000);
    }
  }
  EXPECT_GT(held, 10);
  EXPECT_LT(ends_ms.size(), 6U) << "many messages come at one end";
}

}  // namespace
}  // namespace rrfp
