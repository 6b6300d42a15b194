// Goal: layouts say what they say to Megatron-LM, faults are named by their
// place, and balanced cuts are the best ones.
#include "traces/workload_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>

#include "scheduler_core/random.h"

namespace rrfp {
namespace {

std::vector<LayerCost> model_of(int layers) {
  std::vector<LayerCost> list(static_cast<std::size_t>(layers) + 2);
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].kind = LayerKind::kTransformer;
    list[i].name = "layer " + std::to_string(i - 1);
  }
  list.front().kind = LayerKind::kEmbedding;
  list.front().name = "embedding";
  list.back().kind = LayerKind::kHead;
  list.back().name = "head";
  return list;
}

StageEnds ends_of(const std::string& text, int layers, int stages) {
  const Result<StageEnds> ends = parse_layout(text, model_of(layers), stages);
  EXPECT_TRUE(ends.ok()) << text << ": " << ends.error().message;
  return ends.ok() ? *ends : StageEnds();
}

std::string fault_of(const std::string& text, int layers, int stages) {
  const Result<StageEnds> ends = parse_layout(text, model_of(layers), stages);
  return ends.ok() ? "none" : ends.error().message;
}

TEST(WorkloadLayout, MegatronStringsAreWrittenOut) {
  EXPECT_EQ(ends_of("Ett|tt|tL", 5, 3), (StageEnds{3, 5, 7}));
  EXPECT_EQ(ends_of("Et*2|t*2|t*1L", 5, 3), (StageEnds{3, 5, 7}));
  EXPECT_EQ(ends_of("E, t * 2 | (t|)*2, t L", 5, 4), (StageEnds{3, 4, 5, 7}));
  // DeepSeek-V3's, of Megatron's documentation, with a decoder layer in place of its m.
  StageEnds deep{4};
  for (int i = 0; i < 29; ++i) deep.push_back(deep.back() + 2);
  deep.push_back(deep.back() + 1);
  deep.push_back(deep.back() + 1);
  EXPECT_EQ(ends_of("Et*3|(tt|)*29,t|L", 62, 32), deep);
  // Stages may be empty, groups may hold groups.
  EXPECT_EQ(ends_of("E||t|L", 1, 4), (StageEnds{1, 1, 2, 3}));
  EXPECT_EQ(ends_of("E((t*2|)*2)*2L", 8, 5), (StageEnds{3, 5, 7, 9, 10}));
}

TEST(WorkloadLayout, FaultsAreNamedByTheirPlace) {
  EXPECT_EQ(fault_of("Et*|tL", 2, 2),
            "layout \"Et*|tL\", character 3: \"*\" needs a number of at least 1");
  EXPECT_EQ(fault_of("Etx|tL", 2, 2),
            "layout \"Etx|tL\", character 3: found \"x\"; expected E, t, m, L, |, or a group in "
            "parentheses");
  EXPECT_EQ(fault_of("E(tt|tL", 3, 2),
            "layout \"E(tt|tL\", character 2: a \"(\" without its \")\"");
  EXPECT_EQ(fault_of("Ett)|tL", 3, 2),
            "layout \"Ett)|tL\", character 4: a \")\" without its \"(\"");
  EXPECT_EQ(fault_of("tE|tL", 2, 2),
            "layout \"tE|tL\", character 1: found t; expected E (embedding of the model)");
  EXPECT_EQ(fault_of("Et*3|tL", 3, 2),
            "layout \"Et*3|tL\", character 6: found t; expected L (head of the model)");
  EXPECT_EQ(fault_of("Et|tL", 3, 2),
            "layout \"Et|tL\", character 5: found L; expected t (layer 2 of the model)");
  EXPECT_EQ(fault_of("Et|tL|t", 2, 3),
            "layout \"Et|tL|t\", character 7: nothing may come after L, which is the end of the "
            "model");
  EXPECT_EQ(fault_of("Et|t", 2, 2),
            "layout \"Et|t\", character 5: the layout ends before the model does; expected L "
            "(head)");
  EXPECT_EQ(fault_of("Et|m|tL", 2, 3),
            "layout \"Et|m|tL\", character 4: the model has no layers for multi-token prediction "
            "(m)");
  EXPECT_EQ(fault_of("Et|tL", 2, 4), "layout \"Et|tL\" has 2 stages; expected 4");
  EXPECT_EQ(fault_of("", 2, 1),
            "layout \"\", character 1: the layout ends before the model does; expected E "
            "(embedding)");
}

// Hostile strings cost little.
TEST(WorkloadLayout, RepeatsAndGroupsAreBounded) {
  EXPECT_NE(fault_of("E((((t*9999)*9999)*9999)*9999)*9999", 2, 2).find("more than 100000 layers"),
            std::string::npos);
  EXPECT_NE(fault_of("Et*99999999999999999999", 2, 2).find("more than 100000 layers"),
            std::string::npos);
  EXPECT_NE(fault_of(std::string(100'000, '('), 2, 2).find("too many parentheses"),
            std::string::npos);
}

TEST(WorkloadLayout, EvenPutsWhatIsLeftOverFirst) {
  EXPECT_EQ(*even_layout(model_of(8), 4), (StageEnds{3, 5, 7, 10}));
  EXPECT_EQ(*even_layout(model_of(10), 4), (StageEnds{4, 7, 9, 12}));
  EXPECT_EQ(*even_layout(model_of(3), 1), (StageEnds{5}));
  const Result<StageEnds> many = even_layout(model_of(3), 4);
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().message,
            "found 4 stages for 3 layers; expected at most as many stages as layers");
}

// The costliest stage comes first: a cut with a smaller sum of squares has one of 10.
TEST(WorkloadLayout, BalancedIsAboutTheCostliestStage) {
  const std::vector<double> costs = {4, 2, 6, 1, 1, 1, 9, 1};
  EXPECT_EQ(*balanced_layout(costs, 4), (StageEnds{2, 6, 7, 8}));
}

// Against all cuts there are.
TEST(WorkloadLayout, BalancedIsTheBestOfAllCuts) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto draw = [seed](std::uint64_t index) {
      return random_unit(DrawKey{seed, 0, 0, index});
    };
    const std::size_t n = 2 + static_cast<std::size_t>(8 * draw(0));
    const int stages =
        1 + static_cast<int>(static_cast<double>(std::min<std::size_t>(n, 4)) * draw(1));
    std::vector<double> costs(n);
    for (std::size_t i = 0; i < n; ++i) costs[i] = std::floor(8 * draw(2 + i));
    struct Score {
      double most;
      double squares;
      bool operator<(const Score& other) const {
        return most != other.most ? most < other.most : squares < other.squares;
      }
    };
    const auto score_of = [&costs](const StageEnds& ends) {
      Score score{0, 0};
      std::size_t begin = 0;
      for (const std::size_t end : ends) {
        double sum = 0;
        for (; begin < end; ++begin) sum += costs[begin];
        score.most = std::max(score.most, sum);
        score.squares += sum * sum;
      }
      return score;
    };
    Score best{1e300, 1e300};
    StageEnds ends;
    const std::function<void(std::size_t)> search = [&](std::size_t begin) {
      if (ends.size() + 1 == static_cast<std::size_t>(stages)) {
        if (begin == n) return;
        ends.push_back(n);
        best = std::min(best, score_of(ends));
        ends.pop_back();
        return;
      }
      for (std::size_t end = begin + 1; end < n; ++end) {
        ends.push_back(end);
        search(end);
        ends.pop_back();
      }
    };
    search(0);
    const Result<StageEnds> found = balanced_layout(costs, stages);
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found->size(), static_cast<std::size_t>(stages)) << "seed " << seed;
    EXPECT_EQ(found->back(), n);
    EXPECT_EQ(score_of(*found).most, best.most) << "seed " << seed;
    EXPECT_EQ(score_of(*found).squares, best.squares) << "seed " << seed;
  }
  EXPECT_FALSE(balanced_layout(std::vector<double>{1, 2}, 3).ok());
}

// 64 stages of 20,000 layers, the most that a profile has: a cut for which every pair of layers is
// looked at takes a minute. One that outweighs the others, or layers without cost, cut nothing off.
TEST(WorkloadLayout, BalancedIsQuickWithManyLayers) {
  constexpr std::size_t kLayers = 20'000;
  constexpr int kStages = 64;
  std::vector<double> one_large(kLayers, 1);
  one_large[kLayers / 2] = 1e9;
  const auto start = std::chrono::steady_clock::now();
  for (const std::vector<double>& costs :
       {std::vector<double>(kLayers, 1), std::vector<double>(kLayers, 0), one_large}) {
    const Result<StageEnds> ends = balanced_layout(costs, kStages);
    ASSERT_TRUE(ends.ok());
    ASSERT_EQ(ends->size(), static_cast<std::size_t>(kStages));
    EXPECT_EQ(ends->back(), kLayers);
    std::size_t begin = 0;
    for (const std::size_t end : *ends) {
      EXPECT_LT(begin, end);
      // Where all are alike, stages hold 312 or 313.
      if (costs[0] == 1 && costs[kLayers / 2] == 1) {
        EXPECT_NEAR(static_cast<double>(end - begin), 312.5, 0.5);
      }
      begin = end;
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace rrfp
