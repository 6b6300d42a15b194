// Goal: after a write the file holds the new content or, where the write failed, the old one; and
// no temporary file is left either way.
#include "traces/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/traces/folder_for_tests.h"
#include "traces/text_file.h"

namespace rrfp {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public TestInFolder {
 protected:
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
};

TEST_F(AtomicFile, CreatesAndReplaces) {
  ASSERT_TRUE(write_file_atomically(path_, "first").ok());
  EXPECT_EQ(*read_text_file(path_), "first");
  ASSERT_TRUE(write_file_atomically(path_, "second").ok());
  EXPECT_EQ(*read_text_file(path_), "second");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(AtomicFile, KeepsTheOldContentWhereTheDiskTakesNoMore) {
  ASSERT_TRUE(write_file_atomically(path_, "old").ok());
  // A file size limit stands in for the full disk.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Result<void> result = write_file_atomically(path_, std::string(5000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, path_ + ": cannot write: write: File too large");
  EXPECT_EQ(*read_text_file(path_), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(AtomicFile, SaysWhyItFailed) {
  const std::string lost = (folder_ / "absent" / "out.json").string();
  EXPECT_EQ(write_file_atomically(lost, "x").error().message,
            lost + ": cannot write: create a temporary file beside it: No such file or directory");
  EXPECT_NE(write_file_atomically(folder_.string(), "x").error().message.find("is a directory"),
            std::string::npos);
}

TEST_F(AtomicFile, ReplacesTheFileBehindALinkAndKeepsItsMode) {
  const std::string real = (folder_ / "real.json").string();
  ASSERT_TRUE(write_file_atomically(real, "old").ok());
  fs::permissions(real, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(real, path_);
  ASSERT_TRUE(write_file_atomically(path_, "new").ok());
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(*read_text_file(real), "new");
  EXPECT_EQ(fs::status(real).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AtomicFile, WritesToWhatCannotBeRenamed) {
  EXPECT_TRUE(write_file_atomically("/dev/null", "x").ok());
}

TEST_F(AtomicFile, OfTwoWritersOneWinsAsAWhole) {
  const auto write = [this](char c) {
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(write_file_atomically(path_, std::string(10'000, c)).ok());
    }
  };
  std::thread other(write, 'a');
  write('b');
  other.join();
  const std::string text = *read_text_file(path_);
  EXPECT_TRUE(text == std::string(10'000, 'a') || text == std::string(10'000, 'b'));
  EXPECT_EQ(entries(), 1U);
}

}  // namespace
}  // namespace rrfp
