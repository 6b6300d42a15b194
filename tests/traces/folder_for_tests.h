// A test that has an empty folder of its own while it runs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace rrfp {

class TestInFolder : public ::testing::Test {
 protected:
  TestInFolder() {
    folder_ = std::filesystem::temp_directory_path() / ("rrfp-test-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "out.json").string();
  }
  ~TestInFolder() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  std::string path_;  ///< of a file in it that is not there yet
};

}  // namespace rrfp
