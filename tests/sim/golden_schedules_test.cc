// Goal: run as fixed orders, the named schedules take exactly the time and
// memory that their papers state, and reproduce the bubble rates that the
// zero-bubble authors measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/simulate.h"
#include "tests/core/orders.h"

namespace rrfp {
namespace {

using testing::linear;
using testing::looped;
using testing::v_shaped;

/// Durations of one stage's tasks and the latency of every link.
struct Costs {
  std::int64_t forward_ns = 1;
  std::int64_t input_ns = 1;
  std::int64_t weight_ns = 1;
  std::int64_t latency_ns = 0;

  std::int64_t whole() const { return forward_ns + input_ns + weight_ns; }
};

SimulationResult run(const std::string& name, const Program& program, const Costs& costs,
                     int group = 0) {
  Case given{.name = name, .program = program};
  const auto m = static_cast<std::size_t>(program.microbatches());
  for (int stage = 0; stage < program.stages(); ++stage) {
    const bool split = program.split_backward();
    given.duration_ns.insert(given.duration_ns.end(), m, costs.forward_ns);
    given.duration_ns.insert(given.duration_ns.end(), m,
                             costs.input_ns + (split ? 0 : costs.weight_ns));
    given.duration_ns.insert(given.duration_ns.end(), m, split ? costs.weight_ns : 0);
  }
  given.network.latency_ns.assign(program.edges().size(),
                                  std::vector<std::int64_t>(m, costs.latency_ns));
  given.memory.activation_bytes.assign(m * static_cast<std::size_t>(program.stages()), 1);
  given.policy.hint.name = name;
  given.policy.hint.group = group;
  given.policy.window = 1;
  Result<SimulationResult> result = simulate(given);
  EXPECT_TRUE(result.ok()) << name << ": " << result.error().message;
  EXPECT_TRUE(result->completed) << name;
  return std::move(result).value();
}

/// The largest over stages of last end - first start.
std::int64_t span_ns(const SimulationResult& result) {
  std::map<int, std::pair<std::int64_t, std::int64_t>> stages;
  for (const RankResult& rank : result.ranks) {
    for (std::size_t i = 0; i < rank.order.size(); ++i) {
      auto& [first, last] =
          stages
              .try_emplace(rank.order[i].stage, std::numeric_limits<std::int64_t>::max(),
                           std::int64_t{0})
              .first->second;
      first = std::min(first, rank.start_ns[i]);
      last = std::max(last, rank.end_ns[i]);
    }
  }
  std::int64_t span = 0;
  for (const auto& [stage, times] : stages) span = std::max(span, times.second - times.first);
  return span;
}

std::vector<std::int64_t> peaks(const SimulationResult& result) {
  std::vector<std::int64_t> peaks;
  for (const RankResult& rank : result.ranks) peaks.push_back(rank.peak_bytes);
  return peaks;
}

using Bytes = std::vector<std::int64_t>;

// Unit costs F = I = W = 1, half of that per chunk. All times here are doubled
// so that a half is a whole nanosecond.
constexpr Costs kTwo = {2, 2, 2, 0};
constexpr Costs kChunk = {1, 1, 1, 0};

TEST(GoldenSchedules, UnitCosts) {
  struct Row {
    int p, m;
    double plain, h1, h2_span, h2, interleaved, zb_v_span, zb_v;
  };
  for (const Row& row :
       {Row{4, 8, 33, 27, 24, 27, 28.5, 24, 25.5}, Row{8, 24, 93, 79, 72, 79, 82.5, 72, 75.5}}) {
    const auto expect = [](std::int64_t doubled, double units, const char* what) {
      EXPECT_EQ(static_cast<double>(doubled) / 2, units) << what;
    };
    for (const char* name : {"gpipe", "1f1b", "eager-1f1b"}) {
      expect(run(name, linear(row.p, row.m), kTwo).makespan_ns, row.plain, name);
    }
    const SimulationResult h1 = run("zb-h1", linear(row.p, row.m, true), kTwo);
    expect(h1.makespan_ns, row.h1, "zb-h1");
    expect(span_ns(h1), row.h1, "zb-h1 span");
    const SimulationResult h2 = run("zb-h2", linear(row.p, row.m, true), kTwo);
    expect(span_ns(h2), row.h2_span, "zb-h2 span");
    expect(h2.makespan_ns, row.h2, "zb-h2");
    for (const char* name : {"interleaved-1f1b", "interleaved-1f1b-torch", "looped-bfs"}) {
      expect(run(name, looped(row.p, 2, row.m), kChunk).makespan_ns, row.interleaved, name);
    }
    const SimulationResult zb_v = run("zb-v", v_shaped(row.p, row.m), kChunk);
    expect(span_ns(zb_v), row.zb_v_span, "zb-v span");
    expect(zb_v.makespan_ns, row.zb_v, "zb-v");
  }
}

TEST(GoldenSchedules, PeakActivationsOfFourRanks) {
  EXPECT_EQ(peaks(run("gpipe", linear(4, 8), kTwo)), (Bytes{8, 8, 8, 8}));
  EXPECT_EQ(peaks(run("1f1b", linear(4, 8), kTwo)), (Bytes{4, 3, 2, 1}));
  EXPECT_EQ(peaks(run("eager-1f1b", linear(4, 8), kTwo)), (Bytes{7, 5, 3, 1}));
  EXPECT_EQ(peaks(run("zb-h1", linear(4, 8, true), kTwo)), (Bytes{4, 4, 4, 4}));
  EXPECT_EQ(peaks(run("zb-h2", linear(4, 8, true), kTwo)), (Bytes{7, 7, 7, 7}));
  EXPECT_EQ(peaks(run("interleaved-1f1b", looped(4, 2, 8), kChunk)), (Bytes{11, 9, 7, 5}));
  EXPECT_EQ(peaks(run("zb-v", v_shaped(4, 8), kChunk)), (Bytes{8, 8, 8, 8}));
}

TEST(GoldenSchedules, FourRanksTwelveMicrobatchesWithLatency) {
  const Costs costs = {5478, 5806, 3534, 200};
  EXPECT_EQ(run("gpipe", linear(4, 12), costs).makespan_ns, 223470);
  EXPECT_EQ(run("eager-1f1b", linear(4, 12), costs).makespan_ns, 223470);
  EXPECT_EQ(run("1f1b", linear(4, 12), costs).makespan_ns, 226670);
  EXPECT_EQ(run("zb-h1", linear(4, 12, true), costs).makespan_ns, 203466);
  const SimulationResult h2 = run("zb-h2", linear(4, 12, true), costs);
  EXPECT_EQ(h2.makespan_ns, 194850);
  EXPECT_EQ(span_ns(h2), 191664);
}

// The idle times that the sources state in closed form, without latency.
TEST(GoldenSchedules, IdleInClosedForm) {
  for (const auto& [p, m] : {std::pair{4, 8}, {8, 16}, {8, 32}}) {
    for (const Costs& costs :
         {Costs{2, 2, 2, 0}, Costs{60, 64, 36, 0}, Costs{5478, 5806, 3534, 0}}) {
      const std::int64_t round = costs.whole();
      const std::int64_t hops = p - 1;
      const auto idle = [&, m = m](const SimulationResult& result, int chunks) {
        std::int64_t most = 0;
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        for (const RankResult& rank : result.ranks) {
          EXPECT_EQ(rank.busy_ns, m * chunks * round);
          most = std::max(most, result.makespan_ns - rank.busy_ns);
          least = std::min(least, result.makespan_ns - rank.busy_ns);
        }
        EXPECT_EQ(most, least);
        return most;
      };
      for (const char* name : {"gpipe", "1f1b", "eager-1f1b"}) {
        EXPECT_EQ(idle(run(name, linear(p, m), costs), 1), hops * round) << name;
      }
      EXPECT_EQ(span_ns(run("zb-h1", linear(p, m, true), costs)) - m * round,
                hops * (costs.forward_ns + costs.input_ns - costs.weight_ns));
      EXPECT_EQ(span_ns(run("zb-h2", linear(p, m, true), costs)) - m * round,
                hops * (costs.forward_ns + costs.input_ns - 2 * costs.weight_ns));
      // Costs are per chunk, so that a rank's F + B is v rounds and the
      // idle time (p-1)(F+B)/v is p-1 rounds.
      for (const int v : {2, 4}) {
        for (const char* name : {"interleaved-1f1b", "interleaved-1f1b-torch", "looped-bfs"}) {
          EXPECT_EQ(idle(run(name, looped(p, v, m), costs), v), hops * round) << name << " " << v;
        }
      }
    }
  }
}

// Eager 1F1B pays each link twice in all; 1F1B pays in every round.
TEST(GoldenSchedules, EagerHidesLatency) {
  for (const auto& [p, m] : {std::pair{4, 8}, {8, 16}, {8, 32}}) {
    for (const std::int64_t c : {1, 100, 600}) {
      const Costs costs = {5478, 5806, 3534, c};
      const std::int64_t ideal = (m + p - 1) * costs.whole() + 2 * (p - 1) * c;
      EXPECT_EQ(run("eager-1f1b", linear(p, m), costs).makespan_ns, ideal);
      EXPECT_GT(run("1f1b", linear(p, m), costs).makespan_ns, ideal);
    }
  }
}

TEST(GoldenSchedules, ZeroBubbleVIsFullExactlyWhenCostsAreEqual) {
  const auto bubble = [](int p, int m, const Costs& costs) {
    return span_ns(run("zb-v", v_shaped(p, m), costs)) - 2 * m * costs.whole();
  };
  for (const auto& [p, m] : {std::pair{4, 8}, {8, 16}, {8, 32}}) {
    EXPECT_EQ(bubble(p, m, {7, 7, 7, 0}), 0);
    EXPECT_GT(bubble(p, m, {8, 7, 7, 0}), 0);
    EXPECT_GT(bubble(p, m, {7, 8, 7, 0}), 0);
    EXPECT_GT(bubble(p, m, {7, 7, 6, 0}), 0);
  }
}

/// Bubble rates of the zero-bubble papers, from their measured profiles.
struct BubbleRow {
  int p, m;
  Costs costs;
  double plain, eager, h1, h2;
};

class BubbleRates : public ::testing::TestWithParam<BubbleRow> {};

TEST_P(BubbleRates, AreTheMeasuredOnes) {
  const BubbleRow& row = GetParam();
  const auto expect = [&](const char* name, bool split, double rate) {
    const std::int64_t span = span_ns(run(name, linear(row.p, row.m, split), row.costs));
    const double bubble =
        static_cast<double>(span - row.m * row.costs.whole()) / static_cast<double>(span);
    EXPECT_LE(std::abs(bubble - rate), 5e-5) << name << ": " << bubble << ", not " << rate;
  };
  expect("1f1b", false, row.plain);
  expect("eager-1f1b", false, row.eager);
  expect("zb-h1", true, row.h1);
  expect("zb-h2", true, row.h2);
}

INSTANTIATE_TEST_SUITE_P(
    FirstPaper, BubbleRates,
    ::testing::Values(BubbleRow{8, 24, {18522, 18086, 9337, 601}, .2431, .2304, .1585, .1083},
                      BubbleRow{8, 32, {18513, 18086, 9331, 626}, .1985, .1835, .1242, .0837},
                      BubbleRow{8, 64, {18546, 18097, 9321, 762}, .1240, .1015, .0674, .0444},
                      BubbleRow{8, 24, {29718, 29444, 19927, 527}, .2347, .2281, .1323, .0698},
                      BubbleRow{8, 32, {29802, 29428, 19530, 577}, .1898, .1816, .1045, .0559},
                      BubbleRow{8, 64, {29935, 29621, 19388, 535}, .1091, .0998, .0554, .0294},
                      BubbleRow{16, 48, {11347, 11248, 8132, 377}, .2552, .2425, .1397, .0672},
                      BubbleRow{16, 64, {11307, 11254, 8101, 379}, .2082, .1937, .1088, .0516},
                      BubbleRow{16, 128, {11325, 11308, 8109, 378}, .1251, .1072, .0576, .0266},
                      BubbleRow{32, 96, {10419, 10207, 7715, 408}, .2646, .2494, .1421, .0641},
                      BubbleRow{32, 128, {10408, 10204, 7703, 408}, .2168, .1995, .1106, .0490},
                      BubbleRow{32, 256, {10402, 10248, 7698, 460}, .1352, .1111, .0594, .0257}));

INSTANTIATE_TEST_SUITE_P(
    SecondPaper, BubbleRates,
    ::testing::Values(BubbleRow{16, 48, {14407, 14380, 9676, 1610}, .2935, .2530, .1719, .0932},
                      BubbleRow{16, 64, {14412, 14393, 9688, 1621}, .2491, .2026, .1349, .0716},
                      BubbleRow{16, 128, {14316, 14306, 9639, 1619}, .1707, .1128, .0723, .0371},
                      BubbleRow{24, 72, {6763, 6969, 5251, 755}, .2958, .2564, .1622, .0739},
                      BubbleRow{24, 96, {6783, 6984, 5259, 758}, .2505, .2055, .1269, .0566},
                      BubbleRow{24, 192, {6785, 6990, 5260, 770}, .1712, .1146, .0680, .0293},
                      BubbleRow{32, 96, {9458, 9748, 7288, 879}, .2897, .2561, .1583, .0722},
                      BubbleRow{32, 128, {9469, 9744, 7306, 892}, .2442, .2054, .1238, .0551},
                      BubbleRow{32, 256, {9447, 9644, 7193, 887}, .1628, .1145, .0664, .0290}));

}  // namespace
}  // namespace rrfp
