// Goal: a sender never has more messages out than the receiver has buffers,
// and under either admission rule the message that the receiver needs next can
// always go.
#include "scheduler_core/edge_credits.h"

#include <gtest/gtest.h>

#include <vector>

#include "scheduler_core/random.h"

namespace rrfp {
namespace {

std::vector<int> drain(EdgeCredits& credits) {
  std::vector<int> sent;
  for (int m = credits.next(); m != EdgeCredits::kNothing; m = credits.next()) sent.push_back(m);
  return sent;
}

TEST(EdgeCredits, SharesSendInOrderOfFinish) {
  EdgeCredits credits(4, 2, AdmissionRule::kShares);
  for (const int m : {2, 0, 3, 1}) credits.on_output(m);
  EXPECT_EQ(drain(credits), (std::vector<int>{2, 0}));
  EXPECT_TRUE(credits.waits());
  credits.on_credit();
  EXPECT_EQ(drain(credits), (std::vector<int>{3}));
  credits.on_credit();
  EXPECT_EQ(drain(credits), (std::vector<int>{1}));
  EXPECT_FALSE(credits.waits());
  EXPECT_EQ(credits.sent(), 4);
}

TEST(EdgeCredits, OldestFirstKeepsTheLastCreditForTheLowest) {
  EdgeCredits credits(4, 2, AdmissionRule::kOldestFirst);
  credits.on_output(3);
  credits.on_output(2);
  EXPECT_EQ(drain(credits), (std::vector<int>{2})) << "the other credit is for microbatch 0";
  credits.on_output(1);
  EXPECT_EQ(drain(credits), std::vector<int>{});
  credits.on_output(0);
  EXPECT_EQ(drain(credits), (std::vector<int>{0}));
  credits.on_credit();
  EXPECT_EQ(drain(credits), (std::vector<int>{1}));
  credits.on_credit();
  EXPECT_EQ(drain(credits), (std::vector<int>{3})) << "now the lowest, for 2 has gone before";
}

TEST(EdgeCredits, OneCreditUnderOldestFirstMeansMicrobatchOrder) {
  EdgeCredits credits(3, 1, AdmissionRule::kOldestFirst);
  credits.on_output(1);
  EXPECT_EQ(credits.next(), EdgeCredits::kNothing);
  credits.on_output(0);
  EXPECT_EQ(credits.next(), 0);
  EXPECT_EQ(credits.next(), EdgeCredits::kNothing);
  credits.on_credit();
  EXPECT_EQ(credits.next(), 1);
}

TEST(EdgeCredits, StartsAgainWithAllCredits) {
  EdgeCredits credits(2, 1, AdmissionRule::kShares);
  credits.on_output(1);
  EXPECT_EQ(credits.next(), 1);
  credits.on_output(0);
  credits.reset();
  EXPECT_EQ(credits.next(), EdgeCredits::kNothing);
  credits.on_output(1);
  EXPECT_EQ(credits.next(), 1);
}

// Random finishes, and a receiver that uses messages in random order (shares)
// or as oldest-first admission does (the lowest arrived whose turn it is, or
// any while others remain): everything is sent once, within the credits.
TEST(EdgeCredits, RandomOrdersNeverLockUp) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    RandomStream random({seed, 0, 1, 0});
    const auto rule = seed % 2 == 0 ? AdmissionRule::kShares : AdmissionRule::kOldestFirst;
    const int microbatches = 1 + static_cast<int>(random.below(12));
    const int most = 1 + static_cast<int>(random.below(4));
    EdgeCredits credits(microbatches, most, rule);
    std::vector<int> unfinished;
    for (int m = 0; m < microbatches; ++m) unfinished.push_back(m);
    std::vector<int> out;
    int used_up_to = 0;  // oldest first: the receiver's lowest not yet used
    std::vector<bool> used(static_cast<std::size_t>(microbatches));
    int steps = 0;
    while (credits.sent() < microbatches || !out.empty()) {
      ASSERT_LT(++steps, 10000) << "seed " << seed;
      if (!unfinished.empty()) {
        const auto pick = static_cast<std::ptrdiff_t>(random.below(unfinished.size()));
        credits.on_output(unfinished[static_cast<std::size_t>(pick)]);
        unfinished.erase(unfinished.begin() + pick);
      }
      for (const int m : drain(credits)) out.push_back(m);
      ASSERT_LE(static_cast<int>(out.size()), most);
      // Oldest first at its tightest: no pool, only the lowest may start.
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (rule == AdmissionRule::kOldestFirst && out[i] != used_up_to) continue;
        used[static_cast<std::size_t>(out[i])] = true;
        while (used_up_to < microbatches && used[static_cast<std::size_t>(used_up_to)]) {
          ++used_up_to;
        }
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(i));
        credits.on_credit();
        break;
      }
    }
  }
}

TEST(EdgeCreditsDeathTest, EndsWhereACreditComesBackThatNobodyTook) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EdgeCredits credits(2, 1, AdmissionRule::kShares);
  EXPECT_DEATH(credits.on_credit(), "free_ < credits_");
  credits.on_output(0);
  EXPECT_DEATH(credits.on_output(0), "waiting_");
}

}  // namespace
}  // namespace rrfp
