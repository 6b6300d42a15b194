// Runs `rrfp` inside the test: the same function that main calls.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/commands.h"

namespace rrfp {

struct Ran {
  int status = 0;
  std::string out;
  std::string err;
};

inline Ran run_rrfp(const std::vector<std::string>& arguments) {
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  Terminal terminal{in, out, err};
  const ExitStatus status = run_program(arguments, terminal);
  return {static_cast<int>(status), out.str(), err.str()};
}

/// A folder of the running test's own, empty at its start.
inline std::string test_folder() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) /
      ("rrfp_" + std::string(info->test_suite_name()) + "_" + info->name());
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path.string();
}

inline std::string write_test_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

inline std::string read_test_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline bool absent(const std::string& path) { return !std::filesystem::exists(path); }

/// Of a published job, ST or SE; may be absent.
inline std::string shared_trace(const std::string& job) {
  return std::string(RRFP_SHARED_DIR) + "/data/bytedance/trace-" + job + ".csv.gz";
}

inline std::string own_case(const std::string& name) {
  return std::string(RRFP_SOURCE_DIR) + "/tests/cases/" + name + ".json";
}

}  // namespace rrfp
