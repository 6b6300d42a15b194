// Goal: every case of the shared folder and of the project's own ends exactly
// as expected: the order, start and end of every task, the makespan, and the
// peaks and idle causes where they are given.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/simulate.h"
#include "tests/model/compare_results.h"
#include "tests/traces/files_for_tests.h"
#include "traces/case_file.h"
#include "traces/result_file.h"

namespace rrfp {
namespace {

// `expected_path` is that of the case with .expected before its ending.
void expect_as_written(const std::string& expected_path) {
  const std::string path =
      expected_path.substr(0, expected_path.size() - std::string(".expected.json").size()) +
      ".json";
  SCOPED_TRACE(path);
  const Result<Case> input = read_case_file(path);
  ASSERT_TRUE(input.ok()) << input.error().message;
  Result<SimulationResult> got = simulate(*input);
  ASSERT_TRUE(got.ok()) << got.error().message;
  *got = model::as_in_a_file(*got);
  const Result<JsonDocument> document = read_json_file(expected_path);
  ASSERT_TRUE(document.ok()) << document.error().message;
  const Result<SimulationResult> expected = read_result(*document);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  EXPECT_EQ(got->completed, expected->completed);
  EXPECT_EQ(got->makespan_ns, expected->makespan_ns);
  EXPECT_EQ(got->arrangement, expected->arrangement);
  EXPECT_EQ(got->blocked, expected->blocked);
  ASSERT_EQ(got->ranks.size(), expected->ranks.size());
  for (std::size_t rank = 0; rank < got->ranks.size(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    EXPECT_EQ(got->ranks[rank].order, expected->ranks[rank].order);
    EXPECT_EQ(got->ranks[rank].start_ns, expected->ranks[rank].start_ns);
    EXPECT_EQ(got->ranks[rank].end_ns, expected->ranks[rank].end_ns);
    const JsonValue& json = (*document->root.find("ranks")->array())[rank];
    if (json.find("peak_bytes") != nullptr) {
      EXPECT_EQ(got->ranks[rank].peak_bytes, expected->ranks[rank].peak_bytes);
    }
    if (json.find("peak_inbox_bytes") != nullptr) {
      EXPECT_EQ(got->ranks[rank].peak_inbox_bytes, expected->ranks[rank].peak_inbox_bytes);
    }
    if (json.find("idle_ns") != nullptr) {
      EXPECT_EQ(got->ranks[rank].idle_ns, expected->ranks[rank].idle_ns);
    }
  }
}

TEST(SharedCases, EndExactlyAsExpected) {
  const std::vector<std::string> paths = expected_paths(shared_cases());
  if (paths.empty()) GTEST_SKIP() << "no shared cases in " << shared_cases();
  for (const std::string& path : paths) expect_as_written(path);
}

TEST(OwnCases, EndExactlyAsExpected) {
  EXPECT_EQ(expected_paths(own_cases()).size(), case_paths(own_cases()).size());
  for (const std::string& path : expected_paths(own_cases())) expect_as_written(path);
}

}  // namespace
}  // namespace rrfp
