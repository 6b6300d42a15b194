// Goal: `rrfp simulate` and `rrfp sweep` make of a case what the calibrated
// machine would, say so, and do not mix it with anything else.
#include "tests/experiments/run_for_tests.h"
#include "traces/json_reader.h"

namespace rrfp {
namespace {

// Two ranks, two microbatches, 1f1b: small enough to check by hand. F takes
// 100 ns and B 200 ns, a message of 1000 bytes 10 ns.
const char* const kCase = R"({"schema": "rrfp.case/1", "name": "two",
  "pipeline": {"ranks": 2, "microbatches": 2, "split_backward": false,
    "stages": [{"rank": 0, "predecessors": []}, {"rank": 1, "predecessors": [0]}]},
  "durations_ns": {"F": [[100, 100], [100, 100]], "B": [[200, 200], [200, 200]]},
  "network": {"mode": "eager",
    "message_bytes": {"F": [[1000, 1000], [1000, 1000]], "B": [[1000, 1000], [1000, 1000]]},
    "latency_ns": [{"kind": "F", "from": 0, "to": 1, "ns": [10, 10]},
                   {"kind": "B", "from": 1, "to": 0, "ns": [10, 10]}]},
  "policy": {"hint": {"name": "1f1b"}, "window": 1}})";

// Its link forward takes 20 + 10 ns for 1000 bytes; that backward 1 ns, which the world hides.
std::string calibration(const std::string& task_extra_ns = "5", const std::string& to_rank = "1") {
  return R"({"schema": "rrfp.calibration/1", "workers": 2, "task_extra_ns": )" + task_extra_ns +
         R"(, "message_extra_ns": 3, "timer_late_ns": {"p50": 0, "p99": 0}, "links": [
  {"from_rank": 0, "to_rank": )" +
         to_rank +
         R"(, "latency_ns": 20, "bytes_per_us": 100000},
  {"from_rank": 1, "to_rank": 0, "latency_ns": 0, "bytes_per_us": 1000000}]})";
}

class Calibrated : public testing::Test {
 protected:
  void SetUp() override { folder_ = test_folder(); }

  std::string write(const std::string& name, const std::string& text) const {
    return write_test_file(folder_ + "/" + name, text);
  }
  std::string scenario(const std::string& mode = "eager") const {
    return write("scenario.json", R"({"schema": "rrfp.scenario/1", "name": "s", "iterations": 3,
  "pipeline": {"ranks": 2, "microbatches": 2, "split_backward": false},
  "durations": {"forward_us": 0.1, "backward_us": 0.2},
  "network": {"latency_us": 0.01, "activation_bytes": 1000, "gradient_bytes": 1000},
  "policies": [{"name": "1f1b", "hint": "1f1b", "fixed": true, "network_mode": ")" +
                                      mode + R"("}]})");
  }

  std::string folder_;
};

// Rank 0: F0 0-105, F1 105-210. Rank 1, with 33 ns on the way: F0 138-243, B0 243-448,
// F1 448-553, B1 553-758. Rank 0, with 13 ns: B0 461-666, B1 771-976.
TEST_F(Calibrated, SimulateTakesTheTimesOfTheMachine) {
  const std::string path = write("two.json", kCase);
  const std::string file = write("calibration.json", calibration());
  const Ran ran = run_rrfp({"simulate", path, "--calibration", file});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "\nmakespan 976 ns")) << ran.out;
  EXPECT_EQ(ran.out.find("calibration " + file +
                         ": a task takes 5 ns longer, a message 3 ns beside its link; "
                         "made with 2 workers\n"),
            0U)
      << ran.out;
}

TEST_F(Calibrated, SimulateSaysInJsonWhatItUsed) {
  const std::string path = write("two.json", kCase);
  const std::string file = write("calibration.json", calibration());
  const Ran ran = run_rrfp({"simulate", path, "--calibration", file, "--json"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  const Result<JsonDocument> json = parse_json(ran.out, "output");
  ASSERT_TRUE(json.ok()) << json.error().message;
  const JsonValue* used = json->root.find("calibration");
  ASSERT_NE(used, nullptr);
  EXPECT_EQ(used->find("links")->array()->size(), 2U);
  const Ran plain = run_rrfp({"simulate", path, "--json"});
  EXPECT_FALSE(has(plain.out, "calibration"));
}

TEST_F(Calibrated, WhatDoesNotFitIsRefused) {
  const std::string path = write("two.json", kCase);
  const std::string other = write("other.json", calibration("5", "2"));
  const Ran lacking = run_rrfp({"simulate", path, "--calibration", other});
  EXPECT_EQ(lacking.status, 2);
  EXPECT_TRUE(has(lacking.err, "no link from rank 0 to rank 1")) << lacking.err;
  const std::string broken = write("broken.json", calibration("-5"));
  const Ran negative = run_rrfp({"simulate", path, "--calibration", broken});
  EXPECT_EQ(negative.status, 2);
  EXPECT_TRUE(has(negative.err, "broken.json: /task_extra_ns")) << negative.err;
  const std::string file = write("calibration.json", calibration());
  EXPECT_TRUE(
      has(run_rrfp({"simulate", path, "--network", "launch-queue", "--calibration", file}).err,
          "expected eager or rendezvous"));
  EXPECT_EQ(run_rrfp({"sweep", scenario("launch-queue"), "--calibration", file}).status, 2);
}

TEST_F(Calibrated, SweepRunsWhatSimulateRuns) {
  const std::string file = write("calibration.json", calibration());
  for (const char* mode : {"eager", "rendezvous"}) {
    const std::string path = scenario(mode);
    const Ran swept = run_rrfp({"sweep", path, "--calibration", file, "--json"});
    ASSERT_EQ(swept.status, 0) << swept.err;
    const Result<JsonDocument> json = parse_json(swept.out, "output");
    ASSERT_TRUE(json.ok()) << json.error().message;
    EXPECT_NE(json->root.find("calibration"), nullptr);
    const Ran simulated = run_rrfp({"simulate", path, "--calibration", file});
    const JsonValue& point = json->root.find("points")->array()->front();
    const JsonValue& policy = point.find("policies")->array()->front();
    const std::string mean = std::to_string(*policy.find("p50_ns")->integer());
    EXPECT_TRUE(has(simulated.out, "makespan " + mean + " ns")) << mean << "\n" << simulated.out;
    EXPECT_NE(run_rrfp({"sweep", path, "--json"}).out, swept.out);
  }
  const Ran table = run_rrfp({"sweep", scenario(), "--calibration", file});
  EXPECT_EQ(table.out.find("calibration " + file + ": "), 0U) << table.out;
}

TEST_F(Calibrated, SweepIsResumedWithTheSameOnly) {
  const std::string path = scenario();
  const std::string file = write("calibration.json", calibration());
  const std::string out = folder_ + "/out";
  ASSERT_EQ(run_rrfp({"sweep", path, "--calibration", file, "--out", out}).status, 0);
  const std::string summary = read_test_file(out + "/summary.json");
  EXPECT_EQ(run_rrfp({"sweep", path, "--calibration", file, "--out", out, "--resume"}).status, 0);
  EXPECT_EQ(read_test_file(out + "/summary.json"), summary);
  const Ran without = run_rrfp({"sweep", path, "--out", out, "--resume"});
  EXPECT_EQ(without.status, 2);
  EXPECT_TRUE(has(without.err, "begun with this calibration")) << without.err;
  const std::string other = write("other.json", calibration("6"));
  EXPECT_EQ(run_rrfp({"sweep", path, "--calibration", other, "--out", out, "--resume"}).status, 2);
  // Begun anew, it leaves nothing of the machine behind.
  EXPECT_EQ(run_rrfp({"sweep", path, "--out", out}).status, 2) << "results of other worlds";
  ASSERT_EQ(run_rrfp({"sweep", path, "--out", out, "--force"}).status, 0);
  EXPECT_TRUE(absent(out + "/calibration.json"));
  const Ran late = run_rrfp({"sweep", path, "--calibration", file, "--out", out, "--resume"});
  EXPECT_EQ(late.status, 2);
  EXPECT_TRUE(has(late.err, "begun without a calibration")) << late.err;
}

}  // namespace
}  // namespace rrfp
