// Goal: the test program itself is built, found and run.
#include <gtest/gtest.h>

#include <fstream>

TEST(Harness, KnowsWhereTheSourcesAre) {
  EXPECT_TRUE(std::ifstream(RRFP_SOURCE_DIR "/CMakeLists.txt").good());
}
