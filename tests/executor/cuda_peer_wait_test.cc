// Goal: a wait for other processes ends as soon as one of them is lost or cannot
// go on, says what to do where it took too long, and tells of itself meanwhile;
// and all agree on why. On exchanges that only this test takes part in.
#include "executor/cuda_peer_wait.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "executor/clock.h"

namespace rrfp {
namespace {

constexpr std::int64_t kLongNs = 60'000'000'000;

// Of two lanes; what the other one says is the test's.
class ScriptedExchange final : public LaneExchange {
 public:
  int lanes() const override { return 2; }
  void next_waits_at_most(std::int64_t ns) override { bounds_ns.push_back(ns); }
  Result<std::vector<Payload>> exchange(Payload mine) override {
    if (!others_come.ok()) return others_come.error();
    Payload theirs(mine.size());
    std::memset(theirs.data(), 0, theirs.size());
    std::memcpy(theirs.data(), other_says.data(), other_says.size());
    std::vector<Payload> all;
    all.push_back(std::move(mine));
    all.push_back(std::move(theirs));
    return all;
  }
  Result<void> look() override {
    ++looks;
    return seen;
  }
  void warn(const std::string& why) override { warnings.push_back(why); }

  Result<void> seen;
  Result<void> others_come;
  std::string other_says;
  int looks = 0;
  std::vector<std::int64_t> bounds_ns;
  std::vector<std::string> warnings;
};

std::string message_of(const Result<void>& result) {
  return result.ok() ? "" : result.error().message;
}

// The error of a wait that is over at once.
std::string late_error(CudaPeerWait& wait) {
  sleep_for_ns(2'000'000);
  return message_of(wait.go_on("the other end had not come"));
}

TEST(CudaPeerWait, EndsWithWhatIsSeenOfTheOthersAndStaysSo) {
  ScriptedExchange everyone;
  CudaPeerWait wait(kLongNs, everyone, "connecting NCCL", {});
  EXPECT_TRUE(wait.go_on("late").ok());
  everyone.seen = Error{"process 1 is lost"};
  sleep_for_ns(20'000'000);
  EXPECT_EQ(message_of(wait.go_on("late")), "process 1 is lost");
  everyone.seen = {};
  EXPECT_EQ(message_of(wait.go_on("late")), "process 1 is lost");
}

TEST(CudaPeerWait, DoesNotLookAtTheOthersEveryTime) {
  ScriptedExchange everyone;
  CudaPeerWait wait(kLongNs, everyone, "connecting NCCL", {});
  for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(wait.go_on("late").ok());
  EXPECT_LT(everyone.looks, 100);
}

TEST(CudaPeerWait, NamesTheOptionWhereItTookTooLong) {
  CudaPeerWait wait(1'000'000);
  const std::string error = late_error(wait);
  EXPECT_EQ(error.rfind("the other end had not come after ", 0), 0U) << error;
  EXPECT_NE(error.find(" ms; a --patience-ms above 1 waits longer"), std::string::npos) << error;
}

// A wait of all is bounded by an option of its own.
TEST(CudaPeerWait, NamesTheOptionOfAWaitOfAll) {
  ScriptedExchange everyone;
  CudaPeerWait wait(1'000'000, everyone, "connecting NCCL", {});
  const std::string error = late_error(wait);
  EXPECT_NE(error.find(" ms; an --agree-ms above 1 waits longer"), std::string::npos) << error;
}

TEST(CudaPeerWait, TellsOfItselfMoreAndMoreSeldom) {
  ScriptedExchange everyone;
  std::vector<std::string> told;
  // Long enough for a busy machine to look before it.
  constexpr std::int64_t kSlowNs = 300'000'000;
  CudaPeerWait wait(
      kLongNs, everyone, "connecting NCCL", [&](const std::string& what) { told.push_back(what); },
      kSlowNs);
  wait.begin("channel rank 0 -> rank 1");
  EXPECT_TRUE(wait.go_on("late").ok());
  EXPECT_TRUE(told.empty());
  sleep_for_ns(kSlowNs);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(wait.go_on("late").ok());
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0],
            "connecting NCCL has taken 0 s, now at channel rank 0 -> rank 1; given up after 60 s");
  sleep_for_ns(kSlowNs);
  EXPECT_TRUE(wait.go_on("late").ok());
  EXPECT_EQ(told.size(), 2U);
}

TEST(CudaPeerWait, WhatThisProcessCannotDoAllAreTold) {
  ScriptedExchange everyone;
  CudaPeerWait wait(kLongNs, everyone, "connecting NCCL", {});
  wait.give_up(Error{"no device"});
  EXPECT_EQ(everyone.warnings, std::vector<std::string>{"no device"});
  EXPECT_EQ(message_of(wait.agree(Error{"no device"})), "process 0: no device");
}

TEST(CudaPeerWait, WhoeverWaitedInVainLeavesItToTheOthersToSayWhy) {
  ScriptedExchange everyone;
  everyone.other_says = "no device";
  CudaPeerWait wait(1'000'000, everyone, "connecting NCCL", {});
  const std::string mine = late_error(wait);
  wait.give_up(Error{mine});
  EXPECT_TRUE(everyone.warnings.empty());
  EXPECT_EQ(message_of(wait.agree(Error{mine})), "process 1: no device");
}

// They gave up at about the same time; whoever did not is stuck, and is the one to name.
TEST(CudaPeerWait, WhoeverWaitedInVainAsksBrieflyAndNamesWhoDoesNotCome) {
  ScriptedExchange everyone;
  everyone.others_come = Error{"lane 0 waited in vain for process 1"};
  CudaPeerWait wait(1'000'000, everyone, "connecting NCCL", {});
  const std::string mine = late_error(wait);
  EXPECT_EQ(message_of(wait.agree(Error{mine})),
            "connecting NCCL: lane 0 waited in vain for process 1; " + mine);
  EXPECT_EQ(everyone.bounds_ns, std::vector<std::int64_t>{CudaPeerWait::kBrieflyNs});
}

TEST(CudaPeerWait, WhoeverIsDoneWaitsAsLongAsTheOthersMay) {
  ScriptedExchange everyone;
  CudaPeerWait wait(kLongNs, everyone, "connecting NCCL", {});
  EXPECT_TRUE(wait.agree({}).ok());
  ASSERT_FALSE(everyone.bounds_ns.empty());
  for (const std::int64_t bound_ns : everyone.bounds_ns) {
    EXPECT_LE(bound_ns, kLongNs + CudaPeerWait::kBrieflyNs);
    EXPECT_GT(bound_ns, kLongNs / 2);
  }
}

TEST(CudaPeerWait, WhereAllCannotBeAskedTheLostOneIsNamed) {
  ScriptedExchange everyone;
  CudaPeerWait wait(kLongNs, everyone, "connecting NCCL", {});
  everyone.others_come = Error{"lane 0 waited in vain"};
  everyone.seen = Error{"process 1 is lost: it has closed the connection"};
  EXPECT_EQ(message_of(wait.agree({})),
            "connecting NCCL: process 1 is lost: it has closed the connection");
  EXPECT_EQ(message_of(wait.agree(Error{"channel 0 -> 1: process 1 is lost"})),
            "channel 0 -> 1: process 1 is lost");
}

}  // namespace
}  // namespace rrfp
