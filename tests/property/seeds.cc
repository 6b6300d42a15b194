#include "tests/property/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "traces/case_file.h"

namespace rrfp::model {

bool sanitized() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#else
  return false;
#endif
}

SeedRange seeds_to_run(std::uint64_t usual, std::uint64_t when_sanitized) {
  if (const char* one = std::getenv("RRFP_SEED")) return {std::strtoull(one, nullptr, 10), 1};
  if (const char* many = std::getenv("RRFP_SEEDS")) return {1, std::strtoull(many, nullptr, 10)};
  return {1, sanitized() ? when_sanitized : usual};
}

std::vector<SeedFailure> failing_seeds(const SeedRange& range,
                                       const std::function<std::string(std::uint64_t)>& check,
                                       std::size_t limit) {
  std::atomic<std::uint64_t> next = 0;
  std::atomic<bool> enough = false;
  std::mutex mutex;
  std::vector<SeedFailure> failures;
  const auto work = [&] {
    for (std::uint64_t i = next++; i < range.count && !enough; i = next++) {
      std::string what = check(range.first + i);
      if (what.empty()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      failures.push_back({range.first + i, std::move(what)});
      enough = failures.size() >= limit;
    }
  };
  const unsigned count = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::sort(failures.begin(), failures.end(),
            [](const SeedFailure& a, const SeedFailure& b) { return a.seed < b.seed; });
  return failures;
}

std::string rerun_command(std::uint64_t seed) {
  std::error_code status;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", status);
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string(test->test_suite_name()) + "." + test->name();
  return "RRFP_SEED=" + std::to_string(seed) + " " + program.string() + " --gtest_filter=" + name;
}

std::string keep_case(const Case& given) {
  std::error_code status;
  std::filesystem::path folder = std::filesystem::temp_directory_path(status);
  if (status) folder = ".";
  const std::string path = (folder / ("rrfp-" + given.name + ".json")).string();
  const Result<void> written = write_case_file(path, given);
  return written.ok() ? "the case: " + path
                      : "the case was not written: " + written.error().message;
}

}  // namespace rrfp::model
