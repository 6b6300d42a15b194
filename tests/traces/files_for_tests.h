// Case and result files that tests read: the shared ones, where they are there, and our own.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rrfp {

/// Sorted; without those that hold expected results. Empty where the folder is absent.
inline std::vector<std::string> case_paths(const std::filesystem::path& folder) {
  std::vector<std::string> paths;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) {
    const std::string path = entry.path().string();
    const auto ends = [&path](std::string_view end) { return path.ends_with(end); };
    if (ends(".json") && !ends(".expected.json")) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The same for files with expected results.
inline std::vector<std::string> expected_paths(const std::filesystem::path& folder) {
  std::vector<std::string> paths;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent)) {
    const std::string path = entry.path().string();
    if (path.ends_with(".expected.json")) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

inline std::filesystem::path shared_cases() {
  return std::filesystem::path(RRFP_SHARED_DIR) / "cases";
}
inline std::filesystem::path own_cases() {
  return std::filesystem::path(RRFP_SOURCE_DIR) / "tests" / "cases";
}

}  // namespace rrfp
