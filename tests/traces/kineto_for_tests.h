// Small PyTorch profiler files for tests, and what becomes of them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "traces/profile_import.h"

namespace rrfp {

/// A complete event. Times in microseconds, as text, so that tests can write
/// what they like.
inline std::string event(const std::string& category, const std::string& name,
                         const std::string& thread, const std::string& start,
                         const std::string& length, const std::string& more = "") {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
         R"(", "pid": 1, "tid": )" + thread + R"(, "ts": )" + start + R"(, "dur": )" + length +
         more + "}";
}

inline std::string annotation(const std::string& name, const std::string& start,
                              const std::string& length, const std::string& thread = "1") {
  return event("user_annotation", name, thread, start, length);
}

/// A launch at `launched` of a kernel over [start, start + length].
inline std::string kernel(int correlation, const std::string& launched, const std::string& start,
                          const std::string& length, const std::string& name = "gemm",
                          const std::string& thread = "1") {
  const std::string args = R"(, "args": {"correlation": )" + std::to_string(correlation) + "}";
  return event("cuda_runtime", "cudaLaunchKernel", thread, launched, "1", args) + ",\n" +
         event("kernel", name, "7", start, length, args);
}

inline std::string joined(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& each : events) text += (text.empty() ? "" : ",\n") + each;
  return text;
}

inline std::string kineto_file(const std::vector<std::string>& events, int rank = 0) {
  return R"({"schemaVersion": 1, "distributedInfo": {"rank": )" + std::to_string(rank) +
         "},\n\"traceEvents\": [\n" + joined(events) + "\n]}\n";
}

/// A folder of the running test's own.
class KinetoTest : public ::testing::Test {
 protected:
  KinetoTest() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("rrfp_" + std::string(info->test_suite_name()) + "_" + info->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~KinetoTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    return path;
  }
  Result<ProfileImport> import(const ProfileImportOptions& options = {}) const {
    return import_kineto(folder_.string(), options);
  }
  std::string error(const ProfileImportOptions& options = {}) const {
    const Result<ProfileImport> imported = import(options);
    return imported.ok() ? "none" : imported.error().message;
  }

  std::filesystem::path folder_;
};

template <typename T>
std::vector<T> all(const ProfileImport& imported) {
  std::vector<T> found;
  for (const TraceRecord& record : imported.records) {
    if (const T* held = std::get_if<T>(&record)) found.push_back(*held);
  }
  return found;
}

/// "0F1 100-250", in ns.
inline std::vector<std::string> task_texts(const ProfileImport& imported) {
  std::vector<std::string> texts;
  for (const TraceTask& task : all<TraceTask>(imported)) {
    texts.push_back(to_string(task.task) + " " + std::to_string(task.start_ns) + "-" +
                    std::to_string(task.end_ns));
  }
  return texts;
}

/// How many were dropped for a reason that holds `part`.
inline std::int64_t dropped(const ProfileImport& imported, const std::string& part) {
  std::int64_t count = 0;
  for (const DroppedRecords::Reason& reason : imported.report.dropped.reasons) {
    if (reason.reason.find(part) != std::string::npos) count += reason.count;
  }
  return count;
}

}  // namespace rrfp
