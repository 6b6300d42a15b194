// Goal: the program says which version it is, from a build in any place.
#include "experiments/version.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

namespace {

TEST(Version, ProgramPrintsWhatTheLibraryHolds) {
  FILE* pipe = popen(RRFP_PROGRAM " --version", "r");
  ASSERT_NE(pipe, nullptr);
  std::array<char, 256> line{};
  ASSERT_NE(std::fgets(line.data(), line.size(), pipe), nullptr);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_EQ(std::string(line.data()), "rrfp " + std::string(rrfp::version_text()) + "\n");
}

}  // namespace
