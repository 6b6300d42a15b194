// Goal: a lane runs what its leader announced, in that order, and never goes on
// after a gap in the sequence.
#include "scheduler_core/announced_sequence.h"

#include <gtest/gtest.h>

namespace rrfp {
namespace {

TEST(AnnouncedSequence, HandsOutTasksInAnnouncedOrder) {
  AnnouncedSequence sequence(3);
  EXPECT_EQ(sequence.front(), kNoTask);
  sequence.on_announced(0, 7);
  sequence.on_announced(1, 2);
  EXPECT_EQ(sequence.front(), 7);
  EXPECT_EQ(sequence.pop(), 0);
  sequence.on_announced(2, 9);
  EXPECT_EQ(sequence.front(), 2);
  EXPECT_EQ(sequence.pop(), 1);
  EXPECT_EQ(sequence.front(), 9);
  EXPECT_EQ(sequence.pop(), 2);
  EXPECT_EQ(sequence.front(), kNoTask);
}

TEST(AnnouncedSequence, StartsAgainAtZero) {
  AnnouncedSequence sequence(1);
  sequence.on_announced(0, 7);
  sequence.reset();
  EXPECT_EQ(sequence.front(), kNoTask);
  sequence.on_announced(0, 5);
  EXPECT_EQ(sequence.front(), 5);
}

TEST(AnnouncedSequenceDeathTest, EndsOnGapRepeatAndOverflow) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  AnnouncedSequence sequence(2);
  EXPECT_DEATH(sequence.on_announced(1, 7), "sequence == announced_");
  sequence.on_announced(0, 7);
  EXPECT_DEATH(sequence.on_announced(0, 7), "sequence == announced_");
  sequence.on_announced(1, 8);
  EXPECT_DEATH(sequence.on_announced(2, 9), "tasks_.size");
  sequence.pop();
  sequence.pop();
  EXPECT_DEATH(sequence.pop(), "popped_ < announced_");
}

}  // namespace
}  // namespace rrfp
