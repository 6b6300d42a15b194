// Goal: `rrfp export --to perfetto` shows a recorded trace as it was recorded:
// every task, message and collective once, at its own time, iterations one
// after another.
#include <algorithm>
#include <map>
#include <set>

#include "tests/experiments/run_for_tests.h"
#include "traces/json_reader.h"

namespace rrfp {
namespace {

class TraceTimelineCommand : public testing::Test {
 protected:
  void SetUp() override { folder_ = test_folder(); }

  // A small simulated job as a trace: 2 ranks, 3 microbatches, 2 iterations, and what else the
  // scenario says.
  std::string trace(const std::string& extra = "") const {
    const std::string scenario = write_test_file(
        folder_ + "/s.json",
        R"({"schema": "rrfp.scenario/1", "name": "job", "iterations": 2,
  "pipeline": {"ranks": 2, "microbatches": 3, "split_backward": true},
  "durations": {"forward_us": 10, "input_gradient_us": 10, "weight_gradient_us": 8},
  "network": {"latency_us": 1})" +
            extra + R"(, "policies": [{"name": "zb-h1", "hint": "zb-h1", "fixed": true}]})");
    const std::string path = folder_ + "/job.jsonl";
    const Ran ran = run_rrfp({"export", scenario, path});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return path;
  }

  // What `rrfp export --to perfetto` makes of it.
  JsonDocument shown(const std::string& path, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"export", "--to", "perfetto", path,
                                          folder_ + "/out.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_rrfp(arguments);
    EXPECT_EQ(ran.status, 0) << ran.err;
    Result<JsonDocument> json = parse_json(read_test_file(folder_ + "/out.json"), "out.json");
    EXPECT_TRUE(json.ok()) << json.error().message;
    return std::move(*json);
  }

  static std::vector<const JsonValue*> of_phase(const JsonDocument& document,
                                                const std::string& phase) {
    std::vector<const JsonValue*> events;
    for (const JsonValue& event : *document.root.find("traceEvents")->array()) {
      if (*event.find("ph")->string() == phase) events.push_back(&event);
    }
    return events;
  }
  static double us(const JsonValue& event, const char* key) {
    return std::stod(event.find(key)->decimal()->text);
  }
  static std::int64_t number(const JsonValue& event, const char* key) {
    return *event.find(key)->integer();
  }

  std::string folder_;
};

TEST_F(TraceTimelineCommand, EveryTaskOnceAndNoneBesideAnotherOfItsRank) {
  const JsonDocument document = shown(trace());
  std::map<std::int64_t, std::vector<std::pair<double, double>>> tracks;
  for (const JsonValue* slice : of_phase(document, "X")) {
    const double start = us(*slice, "ts");
    tracks[number(*slice, "tid")].emplace_back(start, start + us(*slice, "dur"));
  }
  ASSERT_EQ(tracks.size(), 2U);
  for (auto& [track, slices] : tracks) {
    EXPECT_EQ(slices.size(), 2U * 3 * 3) << "iterations x microbatches x F, I, W";
    std::sort(slices.begin(), slices.end());
    for (std::size_t i = 1; i < slices.size(); ++i) {
      EXPECT_GE(slices[i].first, slices[i - 1].second - 1e-9) << track;
    }
    EXPECT_EQ(slices.front().first, track == 0 ? 0 : 11) << "10 us of 0F0, and 1 us on the way";
  }
}

TEST_F(TraceTimelineCommand, ArrowsGoFromTheSenderToTheReceiver) {
  const JsonDocument document = shown(trace(), {"--iteration", "0"});
  EXPECT_EQ(of_phase(document, "X").size(), 18U);
  const std::vector<const JsonValue*> begins = of_phase(document, "s");
  const std::vector<const JsonValue*> ends = of_phase(document, "f");
  ASSERT_EQ(begins.size(), 6U);  // 3 activations, 3 gradients
  ASSERT_EQ(ends.size(), 6U);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    EXPECT_EQ(number(*begins[i], "id"), number(*ends[i], "id"));
    const bool forward = *begins[i]->find("name")->string() == "activation";
    EXPECT_EQ(number(*begins[i], "tid") < number(*ends[i], "tid"), forward);
    EXPECT_LT(us(*begins[i], "ts"), us(*ends[i], "ts"));
  }
}

TEST_F(TraceTimelineCommand, ReplicasAndCollectivesHaveTracksOfTheirOwn) {
  const JsonDocument document =
      shown(trace(R"(, "data_parallel": {"replicas": 2, "gradient_sync_us": 5})"));
  std::set<std::string> processes;
  for (const JsonValue* meta : of_phase(document, "M")) {
    if (*meta->find("name")->string() != "process_name") continue;
    processes.insert(*meta->find("args")->find("name")->string());
  }
  EXPECT_EQ(processes.size(), 2U);
  int spans = 0;
  for (const JsonValue* slice : of_phase(document, "X")) {
    const bool span = *slice->find("cat")->string() == "span";
    EXPECT_EQ(number(*slice, "tid") % 2 == 1, span);
    spans += span ? 1 : 0;
  }
  EXPECT_GE(spans, 2 * 2 * 2);
}

TEST_F(TraceTimelineCommand, SaysWhatIsWrong) {
  const std::string path = trace();
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "export");
    const Ran ran = run_rrfp(arguments);
    EXPECT_EQ(ran.status, 2);
    return ran.err;
  };
  const std::string out = folder_ + "/x.json";
  EXPECT_TRUE(has(error({"--to", "perfetto", path, out, "--iteration", "7"}), "no iteration 7"));
  EXPECT_TRUE(has(error({"--to", "perfetto", path, out, "--policy", "a"}), "takes a trace"));
  EXPECT_TRUE(has(error({path, out, "--iteration", "1"}), "needs --to perfetto"));
  EXPECT_TRUE(has(error({"--to", "perfetto", folder_ + "/s.json", out}), "s.json"));
  EXPECT_TRUE(absent(out));
}

}  // namespace
}  // namespace rrfp
