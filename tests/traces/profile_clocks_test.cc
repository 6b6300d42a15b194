// Goal: clocks that keep the causal order stay, others are moved to where all
// messages keep it, and the stated error holds the truth; what contradicts
// itself is told.
#include "traces/profile_clocks.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace rrfp {
namespace {

/// A message whose two kernels ran over these times of one true clock, seen by
/// clocks that are ahead by these offsets.
ClockBound bound(int from, int to, std::int64_t from_offset, std::int64_t to_offset,
                 std::int64_t send_start, std::int64_t send_end, std::int64_t receive_start,
                 std::int64_t receive_end) {
  return {from, to, receive_start + to_offset - (send_end + from_offset),
          receive_end + to_offset - (send_start + from_offset)};
}

TEST(ProfileClocks, StayWhereTheyKeepTheOrder) {
  const AlignedClocks aligned = align_clocks(
      2, {bound(0, 1, 0, 0, 100, 150, 90, 151), bound(1, 0, 0, 0, 300, 340, 330, 341)}, 0);
  EXPECT_FALSE(aligned.moved);
  EXPECT_EQ(aligned.clocks[1].offset_ns, 0);
  // The second message leaves -41 to 10 ns: 300 - 341 and 340 - 330.
  EXPECT_EQ(aligned.clocks[1].error_ns, 41);
  EXPECT_EQ(aligned.clocks[0].error_ns, 0);
  EXPECT_EQ(aligned.contradiction_ns, 0);
}

TEST(ProfileClocks, MoveAlongChainsWithinTheStatedError) {
  const std::int64_t offsets[] = {0, 7'000'000, -1'700'000'000'000'000'000, 5};
  std::vector<ClockBound> bounds;
  for (int rank = 0; rank < 3; ++rank) {
    bounds.push_back(bound(rank, rank + 1, offsets[rank], offsets[rank + 1], 100, 150, 90, 151));
    bounds.push_back(bound(rank + 1, rank, offsets[rank + 1], offsets[rank], 300, 340, 330, 341));
  }
  const AlignedClocks aligned = align_clocks(4, bounds, 10);
  EXPECT_TRUE(aligned.moved);
  EXPECT_EQ(aligned.contradiction_ns, 0);
  for (int rank = 0; rank < 4; ++rank) {
    const auto& clock = aligned.clocks[static_cast<std::size_t>(rank)];
    ASSERT_TRUE(clock.error_ns.has_value());
    EXPECT_LE(std::abs(clock.offset_ns - offsets[rank]), *clock.error_ns) << rank;
    EXPECT_LE(*clock.error_ns, rank * 100) << rank;
  }
}

TEST(ProfileClocks, WithoutMessagesNothingIsKnown) {
  const AlignedClocks aligned = align_clocks(4, {bound(2, 3, 0, 900, 100, 150, 100, 150)}, 0);
  EXPECT_FALSE(aligned.clocks[0].error_ns.has_value());
  EXPECT_FALSE(aligned.clocks[1].error_ns.has_value());
  EXPECT_FALSE(aligned.clocks[2].error_ns.has_value());  // tied to none of a lower number
  EXPECT_EQ(aligned.clocks[3].offset_ns, 900);
  EXPECT_EQ(aligned.clocks[3].error_ns, 50);
}

TEST(ProfileClocks, ContradictionsAreTold) {
  // The second clock is first 500 ahead, then 500 behind: it drifts.
  const AlignedClocks aligned = align_clocks(
      2, {bound(0, 1, 0, 500, 100, 150, 100, 150), bound(0, 1, 0, -500, 900, 950, 900, 950)}, 1);
  EXPECT_TRUE(aligned.moved);
  EXPECT_GE(aligned.contradiction_ns, 450);
  EXPECT_LE(aligned.contradiction_ns, 1024);
  EXPECT_LE(std::abs(aligned.clocks[1].offset_ns), 100);
}

}  // namespace
}  // namespace rrfp
