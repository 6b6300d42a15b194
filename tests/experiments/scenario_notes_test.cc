// Goal: what a table does not say stands beside it: which parts of an iteration
// its times have, how much an activation is, and that messages have no bytes.
#include "tests/experiments/run_for_tests.h"

namespace rrfp {
namespace {

std::string scenario(const std::string& rest) {
  return R"({"schema": "rrfp.scenario/1", "pipeline": {"ranks": 2, "microbatches": 2},
    "durations": {"forward_us": 100, "backward_us": 200},
    "policies": [{"name": "1f1b", "hint": "1f1b", "fixed": true}])" +
         rest + "}";
}

TEST(ScenarioNotes, SimulateAndSweepSayWhatTheirTimesHave) {
  const std::string folder = test_folder();
  const std::string alone = write_test_file(folder + "/alone.json", scenario(""));
  const std::string group = write_test_file(
      folder + "/group.json",
      scenario(R"(, "data_parallel": {"replicas": 2, "gradient_sync_us": 30, "optimizer_us": 5})"));
  EXPECT_TRUE(has(run_rrfp({"simulate", group}).out,
                  "note: one replica, to the end of its last task; an iteration, which `rrfp "
                  "sweep` gives, also has the slowest of 2 replicas, gradient synchronisation of "
                  "up to 30.000 us a stage, an optimizer of 5"));
  EXPECT_TRUE(has(run_rrfp({"sweep", group}).out, "note: whole iterations, with the slowest of 2"));
  for (const char* command : {"simulate", "sweep"}) {
    EXPECT_FALSE(has(run_rrfp({command, alone}).out, "iteration, which"));
    EXPECT_FALSE(has(run_rrfp({command, alone}).out, "whole iterations"));
  }
  EXPECT_FALSE(has(run_rrfp({"simulate", group, "--json"}).out, "note"));
}

TEST(ScenarioNotes, TheSizeOfAnActivationIsNamedOnce) {
  const std::string folder = test_folder();
  const std::string unsized = write_test_file(folder + "/unsized.json", scenario(""));
  const std::string sized =
      write_test_file(folder + "/sized.json", scenario(R"(, "memory": {"activation_mb": [3, 12]},
                                           "grid": {"/network": [{"latency_us": 1}, {}]})"));
  EXPECT_TRUE(has(run_rrfp({"sweep", unsized}).out, "the scenario gives no size"));
  EXPECT_TRUE(has(run_rrfp({"simulate", unsized}).out, "a byte of memory is an activation"));
  EXPECT_FALSE(has(run_rrfp({"simulate", sized}).out, "a byte of memory"));
  const std::string swept = run_rrfp({"sweep", sized}).out;
  const std::string note = "note: memory in activations, of which the largest is 12.000 MB\n";
  const std::size_t at = swept.find(note);
  ASSERT_NE(at, std::string::npos) << swept;
  EXPECT_EQ(swept.find(note, at + 1), std::string::npos) << "the same for both points";
}

TEST(ScenarioNotes, ARunSaysThatItMovesNothing) {
  const std::string folder = test_folder();
  const std::string empty = write_test_file(folder + "/empty.json", scenario(""));
  const std::string note = "note: messages have 0 bytes in " + empty;
  EXPECT_TRUE(has(run_rrfp({"run", empty}).out, note));
  const Ran json = run_rrfp({"run", empty, "--json"});
  EXPECT_FALSE(has(json.out, "note"));
  EXPECT_TRUE(has(json.err, note));
  EXPECT_TRUE(has(run_rrfp({"run", own_case("three-chunks")}).out, "messages have 0 bytes") ==
              !has(read_test_file(own_case("three-chunks")), "message_bytes"));
  const std::string full = write_test_file(folder + "/full.json",
                                           scenario(R"(, "network": {"gradient_bytes": [0, 64]})"));
  EXPECT_FALSE(has(run_rrfp({"run", full}).out, "0 bytes"));
}

}  // namespace
}  // namespace rrfp
