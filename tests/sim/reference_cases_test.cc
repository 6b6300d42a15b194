// Goal: the reference model, which the property tests hold the simulator to,
// gives every expected result of the shared cases and our own itself, so that
// no expected result is simulate()'s word alone.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/model/check_run.h"
#include "tests/model/compare_results.h"
#include "tests/model/reference_simulator.h"
#include "tests/traces/files_for_tests.h"
#include "traces/case_file.h"
#include "traces/result_file.h"

namespace rrfp {
namespace {

// The expected files give orders, times, and the peaks of eager runs.
SimulationResult without_what_is_not_given(SimulationResult result, NetworkMode mode) {
  for (RankResult& rank : result.ranks) {
    rank.decided_ns.clear();
    rank.idle_ns = {};
    rank.busy_ns = 0;
    if (mode != NetworkMode::kEager) rank.peak_bytes = 0;
  }
  return result;
}

TEST(ReferenceCases, SharedCasesEndAsExpected) {
  const std::vector<std::string> paths = case_paths(shared_cases());
  if (paths.empty()) GTEST_SKIP() << "no shared cases in " << shared_cases();
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const Result<Case> given = read_case_file(path);
    ASSERT_TRUE(given.ok()) << given.error().message;
    if (given->network.mode == NetworkMode::kLaunchQueue) continue;
    const std::string stem = path.substr(0, path.size() - std::string(".json").size());
    const Result<SimulationResult> expected = read_result_file(stem + ".expected.json");
    ASSERT_TRUE(expected.ok()) << expected.error().message;
    const Result<SimulationResult> modelled = model::reference_simulate(*given);
    ASSERT_TRUE(modelled.ok()) << modelled.error().message;
    EXPECT_EQ(
        model::difference(expected, without_what_is_not_given(*modelled, given->network.mode)), "");
    EXPECT_EQ(model::check_run(*given, *modelled), "");
  }
}

TEST(ReferenceCases, OwnCasesEndAsExpected) {
  const std::vector<std::string> paths = case_paths(own_cases());
  ASSERT_FALSE(paths.empty());
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const Result<Case> given = read_case_file(path);
    ASSERT_TRUE(given.ok()) << given.error().message;
    if (given->network.mode == NetworkMode::kLaunchQueue) continue;
    const std::string stem = path.substr(0, path.size() - std::string(".json").size());
    const Result<SimulationResult> modelled = model::reference_simulate(*given);
    ASSERT_TRUE(modelled.ok()) << modelled.error().message;
    EXPECT_EQ(model::difference(read_result_file(stem + ".expected.json"),
                                model::as_in_a_file(*modelled)),
              "");
    EXPECT_EQ(model::check_run(*given, *modelled), "");
  }
}

}  // namespace
}  // namespace rrfp
