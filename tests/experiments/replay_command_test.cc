// Goal: `rrfp replay` prints the published figures of real jobs and what other
// arrangements would have made of them; a trace that was exported from a
// scenario replays to what was simulated, with golden output; wrong usage is
// one message.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/experiments/run_for_tests.h"
#include "traces/byte_source.h"

namespace rrfp {
namespace {

using nlohmann::json;

json replayed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "replay");
  arguments.emplace_back("--json");
  const Ran ran = run_rrfp(arguments);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return json::parse(ran.out);
}

const json& row_of(const json& what_if, const std::string& policy, const std::string& network) {
  for (const json& row : what_if["rows"]) {
    if (row["policy"] == policy && row["network"] == network) return row;
  }
  ADD_FAILURE() << policy << " under " << network;
  return what_if;
}

TEST(ReplayCommand, TellsWhatArrangementAndBalanceAreWorthOnSe) {
  const std::string trace = shared_trace("SE");
  if (absent(trace)) GTEST_SKIP() << "no shared data/bytedance";
  const json report = replayed({trace, "--what-if"});
  EXPECT_NEAR(report["replay_over_measured"].get<double>(), 0.995, 0.0005);
  EXPECT_NEAR(report["slowdown"].get<double>(), 1.5374, 0.0005);
  const json& what_if = report["what_if"];
  EXPECT_EQ(what_if["recorded_as"], "1f1b");
  EXPECT_NEAR(row_of(what_if, "recorded, fixed, hill", "eager")["speedup"].get<double>(), 1.08,
              0.005);
  // The mean work of the busiest rank, and the same with the shortest way in
  // and out: between them lies what balance can give.
  const double at_most = what_if["perfect_balance_work_alone"]["speedup"];
  const double with_fill = what_if["perfect_balance"]["speedup"];
  EXPECT_NEAR(at_most, 1.44, 0.02);
  EXPECT_GT(with_fill, 1.3);
  EXPECT_LT(with_fill, at_most);
  const std::int64_t first = what_if["rows"][0]["peak_activations"];
  for (const json& row : what_if["rows"]) {
    ASSERT_FALSE(row.contains("error")) << row.dump();
    EXPECT_EQ(row["peak_activations"], first) << row.dump();
    EXPECT_GT(row["mean_ns"], what_if["perfect_balance"]["mean_ns"]) << row.dump();
  }
}

TEST(ReplayCommand, TellsOfStWhereBalanceIsWorthNothing) {
  const std::string trace = shared_trace("ST");
  if (absent(trace)) GTEST_SKIP() << "no shared data/bytedance";
  const json report = replayed({trace, "--what-if", "--split-fraction", "0.33"});
  EXPECT_NEAR(report["replay_over_measured"].get<double>(), 0.981, 0.0005);
  EXPECT_NEAR(report["slowdown"].get<double>(), 1.1787, 0.0005);
  const json& what_if = report["what_if"];
  for (const json& row : what_if["rows"]) {
    if (!row.contains("mean_ns")) continue;
    EXPECT_GT(row["mean_ns"], what_if["perfect_balance"]["mean_ns"]) << row.dump();
  }
  const json whole = replayed({trace, "--what-if"});
  EXPECT_LT(whole["what_if"]["perfect_balance"]["speedup"].get<double>(), 1.02);
  EXPECT_TRUE(has(row_of(what_if, "zb-h1, ready+wait", "eager")["note"], "assumes W = 0.33 B"));
  // Its order needs more than 1f1b holds on the last ranks.
  EXPECT_EQ(row_of(what_if, "zb-h1, fixed", "eager")["blocked_iterations"], 32);
  const json even =
      replayed({trace, "--hint", "zb-h1", "--budget", "even", "--split-fraction", "0.33"});
  const json& row = row_of(even["what_if"], "zb-h1, fixed", "eager");
  EXPECT_EQ(row["blocked_iterations"], 0);
  EXPECT_TRUE(has(row["note"], "more activations on all ranks than baseline")) << row.dump();
}

constexpr std::string_view kScenario = R"({"schema": "rrfp.scenario/1", "name": "two", "seed": 3,
  "iterations": 3, "pipeline": {"ranks": 3, "microbatches": 5},
  "durations": {"forward_ms": 10, "backward_ms": 20},
  "data_parallel": {"replicas": 2, "gradient_sync_ms": 3, "optimizer_ms": 2},
  "network": {"latency_ms": 1},
  "variability": [{"model": "lognormal", "on": "compute", "scope": "operation", "cv": 0.3}],
  "policies": [{"name": "1f1b", "hint": "1f1b", "fixed": true}, {"name": "ready", "hint": "bf"}]})";

TEST(ReplayCommand, AnExportedScenarioReplaysToWhatWasSimulated) {
  const std::string folder = test_folder();
  const std::string scenario = write_test_file(folder + "/two.json", std::string(kScenario));
  for (const std::string policy : {"1f1b", "ready"}) {
    const std::string trace = folder + "/" + policy + ".jsonl.gz";
    const Ran exported = run_rrfp({"export", scenario, trace, "--policy", policy});
    ASSERT_EQ(exported.status, 0) << exported.err;
    EXPECT_TRUE(exported.out.ends_with("\n" + trace + ": 3 iterations of 2 replicas\n"))
        << exported.out;
    const Ran info = run_rrfp({"info", trace});
    EXPECT_TRUE(has(info.out, "180 tasks, 120 messages, 36 spans")) << info.out;
    EXPECT_FALSE(has(info.out, "odd, and kept")) << info.out;
    const json report = replayed({trace});
    // A simulation has no launch delay, so nothing is left out.
    EXPECT_NEAR(report["replay_over_measured"].get<double>(), 1.0, 1e-6);
    EXPECT_EQ(report["iterations"].size(), 3U);
    const json& row = report["what_if"]["rows"][0];
    EXPECT_EQ(row["mean_ns"], report["measured_mean_ns"]) << row.dump();
    // Every rank's time adds up.
    std::int64_t whole_ns = 0;
    for (const json& step : row["step_ns"]) whole_ns += 2 * step.get<std::int64_t>();
    for (const json& rank : report["what_if"]["ranks"]) {
      std::int64_t sum_ns =
          rank["busy_ns"].get<std::int64_t>() + rank["around_ns"].get<std::int64_t>();
      for (const auto& [cause, ns] : rank["idle_ns"].items()) sum_ns += ns.get<std::int64_t>();
      EXPECT_EQ(sum_ns, whole_ns);
    }
  }
}

// Compressed bytes differ with the library's version.
std::string unpacked(const std::string& path) {
  Result<ByteSource> source = ByteSource::open(path);
  EXPECT_TRUE(source.ok()) << path;
  std::string text;
  std::string part(1 << 16, '\0');
  while (source.ok()) {
    const Result<std::size_t> got = source->read(part.data(), part.size());
    EXPECT_TRUE(got.ok()) << path;
    if (!got.ok() || *got == 0) break;
    text.append(part, 0, *got);
  }
  return text;
}

TEST(ReplayCommand, BundledTraceGivesTheGoldenOutput) {
  const std::string source = RRFP_SOURCE_DIR;
  const std::string trace = source + "/experiments/noisy-1f1b.trace.jsonl.zst";
  const std::string folder = test_folder();
  const std::string again = folder + "/again.jsonl.zst";
  ASSERT_EQ(run_rrfp({"export", source + "/experiments/noisy-1f1b.json", again}).status, 0);
  EXPECT_TRUE(unpacked(trace) == unpacked(again)) << "the bundled trace is not what export writes";

  Ran ran = run_rrfp({"replay", trace, "--what-if", "--steps"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  ran.out.erase(0, source.size() + 1);
  EXPECT_EQ(ran.out, read_test_file(source + "/tests/experiments/noisy-1f1b.replay.txt"));
}

TEST(ReplayCommand, ADamagedTraceIsOneMessageThatNamesThePlace) {
  const std::string folder = test_folder();
  const std::string scenario = write_test_file(folder + "/two.json", std::string(kScenario));
  const std::string trace = folder + "/two.jsonl";
  ASSERT_EQ(run_rrfp({"export", scenario, trace}).status, 0);
  const std::string whole = read_test_file(trace);
  const std::size_t half = whole.find('\n', whole.size() / 2) + 1;
  const std::string cut = write_test_file(folder + "/cut.jsonl", whole.substr(0, half));
  const std::string torn = write_test_file(folder + "/torn.jsonl", whole.substr(0, half - 5));
  std::string packed_trace = folder + "/two.jsonl.zst";
  ASSERT_EQ(run_rrfp({"export", scenario, packed_trace}).status, 0);
  const std::string packed = read_test_file(packed_trace);
  const std::string short_packed =
      write_test_file(folder + "/short.jsonl.zst", packed.substr(0, packed.size() / 2));
  for (const std::string& file : {cut, torn, short_packed}) {
    for (const std::string command : {"info", "replay"}) {
      const Ran ran = run_rrfp({command, file});
      EXPECT_EQ(ran.status, 2) << file;
      EXPECT_EQ(ran.out, "");
      EXPECT_TRUE(has(ran.err, file + ": line ")) << ran.err;
      EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    }
  }
  // A record that is well formed and cannot be is dropped, and told.
  std::string impossible = whole;
  const std::size_t line = impossible.find('\n') + 1;
  impossible.insert(line, impossible.substr(line, impossible.find('\n', line) + 1 - line));
  const std::size_t end = impossible.rfind("[\"end\",");
  impossible = impossible.substr(0, end) + "[\"end\",337]\n";
  const Ran twice = run_rrfp({"replay", write_test_file(folder + "/twice.jsonl", impossible)});
  EXPECT_EQ(twice.status, 0) << twice.err;
  EXPECT_TRUE(has(twice.out, "dropped 1 iteration") || has(twice.out, "no causes")) << twice.out;
}

struct Wrong {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(ReplayCommand, WrongUsageIsOneMessage) {
  const std::string folder = test_folder();
  const std::string scenario = write_test_file(folder + "/two.json", std::string(kScenario));
  const std::string trace = folder + "/two.jsonl";
  ASSERT_EQ(run_rrfp({"export", scenario, trace}).status, 0);
  const std::vector<Wrong> cases = {
      {{"replay"}, "TRACE is missing"},
      {{"replay", scenario}, "two.json: found a scenario"},
      {{"replay", trace, "--hint", "1f1c"}, "--hint: unknown \"1f1c\"; did you mean \"1f1b\"?"},
      {{"replay", trace, "--window", "0"}, "--window: found \"0\"; expected none or"},
      {{"replay", trace, "--anticipation", "often"},
       "--anticipation: found \"often\"; expected off"},
      {{"replay", trace, "--arrange", "up"}, "--arrange: unknown \"up\""},
      {{"replay", trace, "--network", "eagr"},
       "--network: unknown \"eagr\"; did you mean \"eager\"?"},
      {{"replay", trace, "--budget", "lots"}, "--budget: found \"lots\"; expected none, recorded"},
      {{"replay", trace, "--budget", "1,2"}, "two.jsonl: --budget: found 2 numbers; expected one"},
      {{"replay", trace, "--split-fraction", "1"}, "--split-fraction: expected a share of B"},
      {{"export", scenario}, "expected two files, FILE and OUT; found 1"},
      {{"export", scenario, trace, "--policy", "gpipe"}, "--policy: unknown \"gpipe\""},
      {{"export", trace, trace}, "two.jsonl"},
  };
  for (const Wrong& wrong : cases) {
    const Ran ran = run_rrfp(wrong.arguments);
    EXPECT_EQ(ran.status, 2) << wrong.message;
    EXPECT_EQ(ran.out, "") << wrong.message;
    EXPECT_TRUE(has(ran.err, wrong.message)) << ran.err << wrong.message;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

}  // namespace
}  // namespace rrfp
