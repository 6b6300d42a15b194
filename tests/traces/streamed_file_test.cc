// Goal: a file that is written piece by piece replaces the file behind a link, and never what is no
// file: a device or a pipe gets the text and stays what it is.
#include "traces/streamed_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/traces/folder_for_tests.h"
#include "traces/text_file.h"

namespace rrfp {
namespace {

namespace fs = std::filesystem;

class Streamed : public TestInFolder {
 protected:
  static Result<void> write(const std::string& path, std::string_view text) {
    Result<StreamedFile> file = StreamedFile::create(path);
    if (!file.ok()) return file.error();
    file->append(text);
    return file->finish();
  }
};

TEST_F(Streamed, APipeGetsTheTextAndStaysAPipe) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  const Result<void> written = write(path_, "new");
  EXPECT_TRUE(written.ok()) << written.error().message;
  EXPECT_TRUE(fs::is_fifo(path_)) << "the pipe was replaced";
  std::string read(8, '\0');
  const ssize_t size = ::read(reader, read.data(), read.size());
  ::close(reader);
  EXPECT_EQ(read.substr(0, static_cast<std::size_t>(std::max<ssize_t>(size, 0))), "new");
}

TEST_F(Streamed, ADeviceStaysADevice) {
  EXPECT_FALSE(write("/dev/full", "new").ok()) << "a full device takes nothing";
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(Streamed, TheFileBehindALinkIsReplaced) {
  const std::string real = (folder_ / "real").string();
  ASSERT_TRUE(write(real, "old").ok());
  fs::create_symlink(real, path_);
  ASSERT_TRUE(write(path_, "new").ok());
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(*read_text_file(real), "new");
}

}  // namespace
}  // namespace rrfp
