// Goal: microbatches enter in the stated order, ties as given.
#include "scheduler_core/arrangement.h"

#include <gtest/gtest.h>

#include <limits>

namespace rrfp {
namespace {

using Ints = std::vector<int>;
using Times = std::vector<std::int64_t>;

TEST(Arrange, AscendingAndHill) {
  const Times cost = {50, 10, 40, 20, 30, 60};
  EXPECT_EQ(arrange(Arrangement::kGiven, 6, cost), (Ints{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(arrange(Arrangement::kAscending, 6, cost), (Ints{1, 3, 4, 2, 0, 5}));
  // a[0], a[2], a[4], then a[5], a[3], a[1].
  EXPECT_EQ(arrange(Arrangement::kHill, 6, cost), (Ints{1, 4, 0, 5, 2, 3}));
  // An odd number: a[0], a[2], a[4], then a[3], a[1].
  EXPECT_EQ(arrange(Arrangement::kHill, 5, Times{1, 2, 3, 4, 5}), (Ints{0, 2, 4, 3, 1}));
  EXPECT_EQ(arrange(Arrangement::kHill, 1, Times{7}), (Ints{0}));
}

TEST(Arrange, TiesKeepTheirGivenOrder) {
  EXPECT_EQ(arrange(Arrangement::kAscending, 4, Times{5, 1, 5, 1}), (Ints{1, 3, 0, 2}));
  EXPECT_EQ(arrange(Arrangement::kHill, 4, Times{3, 3, 3, 3}), (Ints{0, 2, 3, 1}));
  // Also where there are many.
  Times cost(100, 7);
  Ints expected;
  for (int i = 0; i < 100; ++i) {
    if (i % 3 == 0) cost[static_cast<std::size_t>(i)] = 6;
  }
  for (int i = 0; i < 100; i += 3) expected.push_back(i);
  for (int i = 0; i < 100; ++i) {
    if (i % 3 != 0) expected.push_back(i);
  }
  EXPECT_EQ(arrange(Arrangement::kAscending, 100, cost), expected);
}

TEST(Arrange, CostsSumOverTheWholeTable) {
  // Rows of three: the sums are 9, 8, 7.
  const Times table = {1, 2, 3, 8, 6, 4};
  EXPECT_EQ(arrange(Arrangement::kAscending, 3, table), (Ints{2, 1, 0}));
  // Sums beyond 64 bits.
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(arrange(Arrangement::kAscending, 2, Times{kMost, 1, kMost, 1}), (Ints{1, 0}));
}

TEST(Arrange, KnowsTheGivenOrder) {
  EXPECT_TRUE(is_given_order(Ints{0, 1, 2}));
  EXPECT_FALSE(is_given_order(Ints{0, 2, 1}));
  EXPECT_TRUE(is_given_order({}));
}

}  // namespace
}  // namespace rrfp
