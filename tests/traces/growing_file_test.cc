// Goal: a file grows piece by piece, each readable once it is written; the
// first piece replaces what was there; a disk that is full is told.
#include "traces/growing_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "traces/text_file.h"

namespace rrfp {
namespace {

TEST(GrowingFile, FirstPieceReplacesAndLaterOnesAreAdded) {
  const std::string path = testing::TempDir() + "rrfp_growing_" + std::to_string(getpid());
  std::ofstream(path) << "an earlier run";
  {
    GrowingFile file(path);
    EXPECT_EQ(*read_text_file(path), "an earlier run");
    ASSERT_TRUE(file.append("one\n").ok());
    EXPECT_EQ(*read_text_file(path), "one\n");
    ASSERT_TRUE(file.append("two\n").ok());
    EXPECT_EQ(*read_text_file(path), "one\ntwo\n");
  }
  EXPECT_EQ(*read_text_file(path), "one\ntwo\n");
  std::filesystem::remove(path);
}

TEST(GrowingFile, SaysWhatTheSystemSays) {
  EXPECT_NE(GrowingFile("/absent/file").append("x").error().message.find("/absent/file"),
            std::string::npos);
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  GrowingFile full("/dev/full");
  const Result<void> written = full.append("x");
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("/dev/full: cannot write"), std::string::npos);
}

}  // namespace
}  // namespace rrfp
