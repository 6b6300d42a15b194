// Goal: where annotations name no stage, how many ranks run each is told from
// the ranks that messages name, taken as given, or asked for; never assumed.
#include "traces/profile_width.h"

#include <gtest/gtest.h>

namespace rrfp {
namespace {

// Each rank of a chain of `stages` stages on `width` ranks each sends to the
// next and to the one before.
std::vector<RankRecording> job(int stages, int width, bool ranks_of_pipeline) {
  std::vector<RankRecording> recordings;
  for (int rank = 0; rank < stages * width; ++rank) {
    RankRecording& recording = recordings.emplace_back();
    recording.rank = rank;
    const int stage = rank / width;
    for (const int peer : {stage - 1, stage + 1}) {
      if (peer < 0 || peer >= stages) continue;
      ProfileOperation& operation = recording.operations.emplace_back();
      operation.action.what = ProfileAction::What::kSend;
      operation.action.own_rank = ranks_of_pipeline ? stage : rank;
      operation.action.peer_rank = ranks_of_pipeline ? peer : rank + (peer - stage) * width;
    }
  }
  return recordings;
}

std::vector<RankRecording> without_names(std::vector<RankRecording> recordings) {
  for (RankRecording& recording : recordings) recording.operations.clear();
  return recordings;
}

TEST(ProfileWidth, FollowsFromTheRanksThatMessagesName) {
  for (const bool ranks_of_pipeline : {true, false}) {
    for (const int stages : {2, 4, 7}) {
      for (const int width : {1, 2, 3, 8}) {
        const auto found = width_of_messages(job(stages, width, ranks_of_pipeline));
        ASSERT_TRUE(found) << stages << " stages, " << width;
        EXPECT_EQ(found->ranks, width) << stages << " stages, " << found->why;
      }
    }
  }
  EXPECT_FALSE(width_of_messages(without_names(job(4, 2, true))));
  std::vector<RankRecording> unlike = job(4, 2, true);
  unlike[6].operations[0].action.own_rank = 1;
  EXPECT_FALSE(width_of_messages(unlike)) << "no width gives these";
  std::vector<RankRecording> stray = job(4, 2, true);
  stray[6].operations.push_back(stray[2].operations[0]);
  stray[6].operations.push_back(stray[6].operations[0]);
  EXPECT_EQ(width_of_messages(stray)->ranks, 2) << "most messages of a rank count";
  std::vector<RankRecording> one = job(4, 2, true);
  one.resize(1);
  EXPECT_FALSE(width_of_messages(one)) << "rank 0 is 0 for any width";
}

TEST(ProfileWidth, WhatIsGivenLeavesTheOther) {
  const std::vector<RankRecording> recordings = job(4, 6, true);
  const auto lanes = share_stages(recordings, 2, std::nullopt);
  ASSERT_TRUE(lanes.ok()) << lanes.error().message;
  EXPECT_EQ(lanes->replicas, 2);
  EXPECT_EQ(lanes->lanes, 3);
  EXPECT_NE(lanes->note.find("3 lanes, for 6 ranks run each stage"), std::string::npos);
  const auto replicas = share_stages(recordings, std::nullopt, 6);
  ASSERT_TRUE(replicas.ok());
  EXPECT_EQ(replicas->replicas, 1);
  EXPECT_EQ(replicas->note, "");
  const auto both = share_stages(recordings, 4, 1);
  ASSERT_TRUE(both.ok()) << "whoever says both knows better";
  EXPECT_EQ(both->replicas, 4);
  const auto chain = share_stages(job(4, 1, true), std::nullopt, std::nullopt);
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ(chain->replicas * chain->lanes, 1);
}

TEST(ProfileWidth, IsAskedForWhereItIsNotTold) {
  const auto told = share_stages(job(4, 2, true), std::nullopt, std::nullopt);
  ASSERT_FALSE(told.ok());
  EXPECT_NE(told.error().message.find("2 ranks run each stage"), std::string::npos);
  EXPECT_NE(told.error().message.find("give --dp 2 where they are replicas, --tp 2"),
            std::string::npos)
      << told.error().message;
  const auto silent = share_stages(without_names(job(4, 2, true)), std::nullopt, std::nullopt);
  ASSERT_FALSE(silent.ok());
  EXPECT_NE(silent.error().message.find("the 8 files may be stages or replicas: give --dp"),
            std::string::npos)
      << silent.error().message;
  EXPECT_FALSE(share_stages(without_names(job(4, 2, true)), std::nullopt, 2).ok());
  EXPECT_TRUE(share_stages(without_names(job(4, 2, true)), std::nullopt, 8).ok());
  EXPECT_TRUE(share_stages(without_names(job(4, 2, true)), 1, std::nullopt).ok());
  EXPECT_FALSE(share_stages(job(4, 2, true), 3, std::nullopt).ok()) << "3 does not divide 2";
}

}  // namespace
}  // namespace rrfp
