// Goal: `rrfp fit` makes a scenario that draws jobs like the recorded one. On a
// production job step times agree in mean and tail; from a trace with known
// variability it gives what was planted back; what it writes, a sweep takes;
// small traces and wrong usage end in sentences that say what to do.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/experiments/run_for_tests.h"

namespace rrfp {
namespace {

using nlohmann::json;

json fitted(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "fit");
  arguments.emplace_back("--json");
  const Ran ran = run_rrfp(arguments);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return ran.status == 0 ? json::parse(ran.out) : json();
}

/// A trace of a simulated job.
std::string exported(const std::string& folder, const json& scenario) {
  const std::string file = write_test_file(folder + "/job.json", scenario.dump());
  const std::string trace = folder + "/job.trace.jsonl";
  const Ran ran = run_rrfp({"export", file, trace});
  EXPECT_EQ(ran.status, 0) << ran.err;
  return trace;
}

json job(int ranks, int microbatches, int replicas, int iterations) {
  return {{"schema", "rrfp.scenario/1"},
          {"seed", 5},
          {"iterations", iterations},
          {"pipeline", {{"ranks", ranks}, {"microbatches", microbatches}}},
          {"durations", {{"forward_ms", 10}, {"backward_ms", 20}}},
          {"data_parallel", {{"replicas", replicas}, {"gradient_sync_ms", 7}, {"optimizer_ms", 3}}},
          {"network", {{"latency_ms", 1}}},
          {"policies", {{{"name", "1f1b"}, {"hint", "1f1b"}, {"fixed", true}}}}};
}

double ratio(const json& report, const char* of, const char* to, const char* what) {
  return report["step_time"][of][what].get<double>() / report["step_time"][to][what].get<double>();
}

TEST(FitCommand, DrawsStepsLikeThoseOfAProductionJob) {
  const std::string trace = shared_trace("SE");
  if (absent(trace)) GTEST_SKIP() << "no shared data/bytedance";
  const json report = fitted({trace});
  EXPECT_NEAR(ratio(report, "simulated", "measured", "mean_ns"), 1, 0.03);
  EXPECT_NEAR(ratio(report, "simulated", "measured", "p95_ns"), 1, 0.05);
  EXPECT_EQ(report["recorded_as"], "1f1b");
  for (const char* kind : {"F", "B"}) {
    const json& fit = report["kinds"][kind];
    EXPECT_LT(fit["ks_distance"].get<double>(), 0.05) << kind;
    EXPECT_NEAR(fit["drawn"]["sd"].get<double>(), fit["recorded"]["sd"].get<double>(), 0.02);
    EXPECT_GT(fit["recorded"]["variance_shares"]["microbatch"].get<double>(), 0.9) << kind;
    EXPECT_NEAR(fit["recorded"]["correlation_across_stages"].get<double>(),
                fit["drawn"]["correlation_across_stages"].get<double>(), 0.02);
  }
  const json& backward = report["kinds"]["B"];
  EXPECT_NEAR(backward["recorded"]["correlation_with_f"].get<double>(), 0.993, 0.002);
  EXPECT_NEAR(backward["drawn"]["correlation_with_f"].get<double>(), 0.993, 0.01);
}

// The stage with the most work is the last, and iterations differ as a whole.
// Collectives differ as well, by 3 % of an iteration, which a scenario does not
// draw: the tail of step times is not held to anything.
TEST(FitCommand, FindsTheIterationsOfTheOtherJob) {
  const std::string trace = shared_trace("ST");
  if (absent(trace)) GTEST_SKIP() << "no shared data/bytedance";
  const json report = fitted({trace});
  EXPECT_NEAR(ratio(report, "simulated", "replayed", "mean_ns"), 1, 0.02);
  EXPECT_NEAR(ratio(report, "simulated", "replayed", "p50_ns"), 1, 0.02);
  EXPECT_NEAR(report["effects"]["iteration"]["sd"].get<double>(), 0.021, 0.003);
  const json& forward = report["scenario"]["durations"]["forward_ns"];
  EXPECT_NEAR(forward[3].get<double>() / forward[1].get<double>(), 2.08, 0.02);
}

// Two lognormal models: what a microbatch has in common and what is left.
TEST(FitCommand, GivesPlantedVariabilityBack) {
  json scenario = job(4, 8, 6, 30);
  scenario["variability"] = {
      {{"model", "lognormal"}, {"on", "compute"}, {"scope", "microbatch"}, {"cv", 0.3}},
      {{"model", "lognormal"}, {"on", "compute"}, {"cv", 0.1}},
      {{"model", "lognormal"}, {"on", "latency"}, {"cv", 0.5}}};
  const json report = fitted({exported(test_folder(), scenario)});
  for (const char* kind : {"F", "B"}) {
    const json& fit = report["kinds"][kind];
    // (1 + 0.3^2) (1 + 0.1^2) - 1 in all, 0.3^2 of it the microbatches'.
    EXPECT_NEAR(fit["recorded"]["sd"].get<double>(), std::sqrt(1.09 * 1.01 - 1), 0.02) << kind;
    const double whole = 0.09 + 0.01 * 1.09;
    for (const char* which : {"recorded", "drawn"}) {
      const json& shares = fit[which]["variance_shares"];
      EXPECT_NEAR(shares["microbatch"].get<double>(), 0.09 / whole, 0.03) << kind << which;
      EXPECT_NEAR(shares["residual"].get<double>(), 0.01 * 1.09 / whole, 0.03) << kind << which;
      EXPECT_NEAR(fit[which]["correlation_across_stages"].get<double>(), 0.09 / whole, 0.03);
    }
    EXPECT_LT(fit["ks_distance"].get<double>(), 0.06) << kind;
  }
  EXPECT_NEAR(ratio(report, "simulated", "measured", "mean_ns"), 1, 0.02);
  EXPECT_NEAR(ratio(report, "simulated", "measured", "p95_ns"), 1, 0.04);
  const json& fit = report["scenario"];
  EXPECT_NEAR(fit["durations"]["forward_ns"][2].get<double>(), 10e6, 0.3e6);
  EXPECT_NEAR(fit["network"]["latency_ns"].get<double>(), 1e6 / std::sqrt(1.25), 0.05e6);
  // Of each link, so many sigmas (0.472 of the logarithm) from the median: 5 % and 95 %.
  int links = 0;
  for (const json& model : fit["variability"]) {
    if (model.value("on", "") != "latency") continue;
    ++links;
    const json& body = model["mixture"][1][1]["quantiles"];
    EXPECT_NEAR(body.front().get<double>(), std::exp(-1.645 * 0.472), 0.1) << model["links"];
    EXPECT_NEAR(body.back().get<double>(), std::exp(1.645 * 0.472), 0.25) << model["links"];
  }
  EXPECT_EQ(links, 6);
  EXPECT_NEAR(report["transfers"]["p50_ns"].get<double>(), fit["network"]["latency_ns"], 1);
  EXPECT_EQ(fit["data_parallel"]["replicas"], 6);
  EXPECT_NEAR(fit["data_parallel"]["gradient_sync_ns"][0].get<double>() +
                  fit["data_parallel"]["optimizer_ns"].get<double>(),
              10e6, 1e3);
}

TEST(FitCommand, SharesOfTheVarianceAddUpWhereAStageIsConstant) {
  json scenario = job(2, 8, 2, 10);
  scenario["variability"] = {
      {{"model", "factor"}, {"on", "compute"}, {"stages", {1}}, {"uniform", {0.5, 1.5}}}};
  const json report = fitted({exported(test_folder(), scenario), "--iterations", "10"});
  for (const char* kind : {"F", "B"}) {
    for (const char* which : {"recorded", "drawn"}) {
      double sum = 0;
      for (const json& part : report["kinds"][kind][which]["variance_shares"]) {
        sum += part.get<double>();
      }
      EXPECT_NEAR(sum, 1, 1e-9) << kind << which;
    }
  }
}

TEST(FitCommand, WritesAScenarioThatASweepTakes) {
  const std::string folder = test_folder();
  json scenario = job(4, 8, 1, 5);
  scenario["variability"] = {
      {{"model", "lognormal"}, {"on", "compute"}, {"scope", "microbatch"}, {"cv", 0.3}}};
  const std::string trace = exported(folder, scenario);
  const std::string out = folder + "/fitted.json";
  const Ran ran = run_rrfp({"fit", trace, "--out", out, "--iterations", "50"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "5 iterations are few")) << ran.out;
  EXPECT_TRUE(has(ran.out, "one replica was recorded")) << ran.out;
  const std::string text = read_test_file(out);
  EXPECT_TRUE(text.starts_with("// Fitted by `rrfp fit " + trace)) << text;
  const Ran swept = run_rrfp({"sweep", out, "--iterations", "5", "--threads", "1"});
  EXPECT_EQ(swept.status, 0) << swept.err;
  for (const char* policy :
       {"1f1b ", "1f1b ready", "1f1b ready+wait", "bf ready+wait", "1f1b hill"}) {
    EXPECT_TRUE(has(swept.out, policy)) << policy;
  }
  // The scenario of the report is the one of the file.
  const json report = fitted({trace, "--iterations", "50"});
  EXPECT_EQ(report["scenario"], json::parse(text, nullptr, true, true));
  // A file that somebody may have edited is kept.
  const Ran again = run_rrfp({"fit", trace, "--out", out});
  EXPECT_EQ(again.status, 2);
  EXPECT_TRUE(has(again.err, "exists already")) << again.err;
}

TEST(FitCommand, SplitBackwardsStaySplit) {
  json scenario = job(3, 6, 2, 6);
  scenario["pipeline"]["split_backward"] = true;
  scenario["durations"] = {
      {"forward_ms", 10}, {"input_gradient_ms", 11}, {"weight_gradient_ms", 9}};
  scenario["policies"] = {{{"name", "zb-h1"}, {"hint", "zb-h1"}, {"fixed", true}}};
  scenario["variability"] = {{{"model", "lognormal"}, {"on", "compute"}, {"cv", 0.1}}};
  const json report = fitted({exported(test_folder(), scenario), "--iterations", "20"});
  EXPECT_EQ(report["recorded_as"], "zb-h1");
  const json& fit = report["scenario"];
  EXPECT_EQ(fit["pipeline"]["split_backward"], true);
  EXPECT_NEAR(fit["durations"]["weight_gradient_ns"][1].get<double>(), 9e6, 0.5e6);
  EXPECT_EQ(report["kinds"].size(), 3U);
  EXPECT_EQ(fit["policies"][0]["name"], "zb-h1");
}

// The recorded order still takes its backwards whole, so steps are what they were.
TEST(FitCommand, AnAssumedSplitLeavesTheRecordedOrderAsItWas) {
  const std::string trace = exported(test_folder(), job(4, 8, 2, 4));
  const json whole = fitted({trace, "--iterations", "5"});
  const json split = fitted({trace, "--iterations", "5", "--split-fraction", "0.4"});
  EXPECT_EQ(split["step_time"], whole["step_time"]);
  EXPECT_EQ(split["scenario"]["durations"]["weight_gradient_ns"][1], 8'000'000);
  EXPECT_EQ(split["scenario"]["durations"]["input_gradient_ns"][1], 12'000'000);
  const std::string folder = test_folder();
  const std::string file = write_test_file(folder + "/split.json", split["scenario"].dump());
  const Ran swept = run_rrfp({"sweep", file, "--iterations", "2", "--threads", "1", "--json"});
  ASSERT_EQ(swept.status, 0) << swept.err;
  EXPECT_TRUE(has(swept.out, "zb-h1 ready+wait")) << swept.out;
  for (const char* wrong : {"0", "1", "x"}) {
    EXPECT_EQ(run_rrfp({"fit", trace, "--split-fraction", wrong}).status, 2) << wrong;
  }
}

// Several stages on a rank, and a graph with two roots, one of them frozen: the
// recorded order runs in the budgets of the scenario.
TEST(FitCommand, TakesPipelinesOfEveryShape) {
  const std::string folder = test_folder();
  json looped = job(4, 8, 1, 4);
  looped["pipeline"]["shape"] = "looped";
  looped["pipeline"]["chunks"] = 2;
  looped["policies"] = {{{"name", "i"}, {"hint", "interleaved-1f1b"}, {"fixed", true}}};
  json v = job(4, 8, 1, 4);
  v["pipeline"]["shape"] = "v";
  v["pipeline"]["split_backward"] = true;
  v["durations"] = {{"forward_ms", 10}, {"input_gradient_ms", 11}, {"weight_gradient_ms", 9}};
  v["policies"] = {{{"name", "v"}, {"hint", "zb-v"}, {"fixed", true}}};
  json graph = job(3, 8, 1, 4);
  graph["pipeline"]["stages"] = {
      {{"rank", 0}, {"predecessors", json::array()}, {"backward", "none"}},
      {{"rank", 1}, {"predecessors", json::array()}},
      {{"rank", 2}, {"predecessors", {0, 1}}}};
  graph["policies"] = {{{"name", "bf"}, {"hint", "bf"}}};
  for (json* scenario : {&looped, &v, &graph}) {
    (*scenario)["variability"] = {
        {{"model", "lognormal"}, {"on", "compute"}, {"scope", "microbatch"}, {"cv", 0.2}}};
    const std::string out = folder + "/fitted.json";
    std::filesystem::remove(out);
    const Ran ran =
        run_rrfp({"fit", exported(folder, *scenario), "--iterations", "100", "--out", out});
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(run_rrfp({"sweep", out, "--iterations", "3", "--threads", "1"}).status, 0);
  }
}

// Nothing varies: nothing is drawn, and steps are what they were.
TEST(FitCommand, AJobThatDoesNotVary) {
  const json report = fitted({exported(test_folder(), job(4, 8, 1, 3)), "--iterations", "5"});
  EXPECT_EQ(report["step_time"]["simulated"]["mean_ns"],
            report["step_time"]["measured"]["mean_ns"]);
  for (const json& model : report["scenario"]["variability"]) {
    EXPECT_EQ(model["on"], "latency") << model.dump();
    EXPECT_EQ(model["value"], 1) << model.dump();
  }
}

TEST(FitCommand, SaysWhatIsMissing) {
  const std::string folder = test_folder();
  Ran ran = run_rrfp({"fit", exported(folder, job(2, 4, 1, 1))});
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(has(ran.err, "a fit needs at least 2, and 10 or more")) << ran.err;
  ran = run_rrfp({"fit", exported(folder, job(2, 1, 1, 4))});
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(has(ran.err, "one microbatch per iteration")) << ran.err;
  ran = run_rrfp({"fit"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(has(ran.err, "TRACE")) << ran.err;
  ran = run_rrfp({"fit", folder + "/none.jsonl"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(has(ran.err, "none.jsonl")) << ran.err;
}

TEST(FitCommand, SaysThatMessagesAreMissing) {
  const std::string folder = test_folder();
  const std::string trace = exported(folder, job(2, 4, 1, 4));
  const std::string text = read_test_file(trace);
  std::string kept;
  std::size_t messages = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    std::string line = text.substr(begin, end - begin);
    begin = end;
    if (line.starts_with("[\"message\"")) {
      ++messages;
      continue;
    }
    if (line.starts_with("[\"end\",")) {
      const std::size_t count = std::stoul(line.substr(7)) - messages;
      line = "[\"end\"," + std::to_string(count) + "]\n";
    }
    kept += line;
  }
  ASSERT_EQ(messages, 32U);
  const json report = fitted({write_test_file(folder + "/bare.jsonl", kept), "--iterations", "5"});
  bool said = false;
  for (const json& sentence : report["unknown"]) {
    said = said || has(sentence, "32 messages were not recorded");
  }
  EXPECT_TRUE(said) << report["unknown"].dump();
  EXPECT_EQ(report["scenario"]["network"]["latency_ns"], 0);
}

// What a run moves and what an inbox holds follow from these sizes; times do not, for the
// recorded transfer has them in it.
TEST(FitCommand, TakesTheSizesOfMessages) {
  json scenario = job(3, 4, 1, 4);
  const json without = fitted({exported(test_folder(), scenario), "--iterations", "5"});
  EXPECT_EQ(without["scenario"]["network"]["activation_bytes"], 0);
  EXPECT_TRUE(has(without["unknown"].dump(), "this trace has no bytes"));

  scenario["network"]["activation_bytes"] = {3000, 5000, 0};
  scenario["network"]["gradient_bytes"] = {0, 700, 900};
  const std::string folder = test_folder();
  const json with = fitted({exported(folder, scenario), "--iterations", "5"});
  EXPECT_EQ(with["scenario"]["network"]["activation_bytes"], json({3000, 5000, 0}));
  EXPECT_EQ(with["scenario"]["network"]["gradient_bytes"], json({0, 700, 900}));
  EXPECT_EQ(with["scenario"]["network"]["bandwidth_bytes_per_second"], 0) << "no limit";
  EXPECT_EQ(with["scenario"]["memory"]["activation_bytes"], 250'000);
  EXPECT_TRUE(has(with["unknown"].dump(), "taken to be 50 of the largest"));
  EXPECT_EQ(with["step_time"], without["step_time"]);

  const std::string file = write_test_file(folder + "/fitted.json", with["scenario"].dump());
  EXPECT_EQ(run_rrfp({"sweep", file, "--iterations", "2", "--threads", "1"}).status, 0);
}

TEST(FitCommand, HelpHasAnExample) {
  const Ran ran = run_rrfp({"fit", "--help"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(has(ran.out, "example:\n  rrfp fit experiments/")) << ran.out;
}

}  // namespace
}  // namespace rrfp
