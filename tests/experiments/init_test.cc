// Goal: what `rrfp init` writes runs as it is, says what it assumed, and holds
// the policies that fit the memory.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/experiments/run_for_tests.h"

namespace rrfp {
namespace {

std::vector<std::string> init(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"init",  "--pp",         "4",      "--microbatches",
                                        "8",     "--forward-ms", "18.522", "--backward-ms",
                                        "27.423"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Init, ScenarioRunsAsItIs) {
  const std::string path = test_folder() + "/job.json";
  const Ran made = run_rrfp(init({"--out", path}));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(made.out, "wrote " + path + "; `rrfp sweep " + path + "` runs it\n");
  const Ran swept = run_rrfp({"sweep", path, "--iterations", "2"});
  EXPECT_EQ(swept.status, 0) << swept.err;
  EXPECT_NE(swept.out.find("zb-h1 ready+wait"), std::string::npos) << swept.out;
  EXPECT_EQ(run_rrfp({"simulate", path, "--policy", "zb-h1"}).status, 0);
  // The file is the user's from now on.
  const Ran again = run_rrfp(init({"--out", path}));
  EXPECT_EQ(again.status, 2);
  EXPECT_EQ(again.err,
            "rrfp init: " + path + ": exists already; remove it or give another --out\n");
}

TEST(Init, WhatWasNotGivenIsMarkedAsAssumed) {
  const std::string text = run_rrfp(init({})).out;
  EXPECT_NE(text.find("\"input_gradient_ms\": 13.7115,  // assumed: half of the backward each"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\"latency_us\": 50  // assumed"), std::string::npos);
  const std::string given =
      run_rrfp(init({"--weight-ms", "9.337", "--latency-us", "601", "--model-gb", "20",
                     "--activation-gb", "2.5", "--gpu-gb", "40"}))
          .out;
  EXPECT_EQ(given.find("assumed"), std::string::npos) << given;
  EXPECT_NE(given.find("\"input_gradient_ms\": 18.086,"), std::string::npos) << given;
  EXPECT_NE(given.find("The rest holds 8 activations."), std::string::npos) << given;
}

TEST(Init, TimesOfYourOwnMeetWorldsByName) {
  const std::string folder = test_folder();
  const std::string one = folder + "/one.json";
  ASSERT_EQ(run_rrfp(init({"--variability", "slow-worker", "--out", one})).status, 0);
  EXPECT_TRUE(has(run_rrfp({"sweep", one, "--iterations", "1"}).out, "presets: slow-worker"));
  const std::string two = folder + "/two.json";
  const Ran made = run_rrfp(
      init({"--variability", "slow-worker,healthy-dedicated+dataloader-stall", "--out", two}));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_TRUE(has(made.err, "dataloader-stall (modelled)")) << made.err;
  const Ran swept = run_rrfp({"sweep", two, "--iterations", "1"});
  EXPECT_TRUE(has(swept.out, "point 1: /variability = [\"healthy-dedicated\",\"dataloader-stall"))
      << swept.out;
  EXPECT_TRUE(has(run_rrfp(init({"--variability", "slow-workr"})).err,
                  "--variability: unknown \"slow-workr\"; did you mean \"slow-worker\"?"));
}

// 1f1b is what frameworks run, here as of a model by name.
TEST(Init, OneForwardOneBackwardHasWholeBackwards) {
  const std::string folder = test_folder();
  const std::string times = folder + "/times.json";
  const std::string model = folder + "/model.json";
  ASSERT_EQ(run_rrfp(init({"--out", times})).status, 0);
  ASSERT_EQ(run_rrfp({"init", "--model", "llama3-8b", "--pp", "4", "--microbatches", "8",
                      "--ignore-memory", "--out", model})
                .status,
            0);
  for (const std::string& path : {times, model}) {
    for (const auto& [policy, tasks] : {std::pair("1f1b", "16"), std::pair("1f1b split", "24")}) {
      const std::string out = run_rrfp({"simulate", path, "--policy", policy}).out;
      const std::size_t row = out.find("\n0  ");
      ASSERT_NE(row, std::string::npos) << out;
      EXPECT_TRUE(has(out.substr(row, 12), tasks)) << path << ": " << out;
    }
  }
}

// 4 ranks: 1f1b and zb-h1 need 4 activations, eager-1f1b and zb-h2 need 7.
TEST(Init, PoliciesThatDoNotFitStandAsComments) {
  const std::string folder = test_folder();
  struct Fit {
    const char* activation_gb;
    bool small;
    bool large;
  };
  for (const Fit& fit :
       {Fit{"10", true, true}, Fit{"11.5", true, false}, Fit{"20", false, false}}) {
    const std::string path = folder + "/" + fit.activation_gb + ".json";
    const Ran made = run_rrfp(init({"--gpu-gb", "80", "--model-gb", "10", "--activation-gb",
                                    fit.activation_gb, "--out", path}));
    ASSERT_EQ(made.status, 0) << made.err;
    const std::string text = read_test_file(path);
    EXPECT_EQ(text.find("// {\"name\": \"zb-h1\"") == std::string::npos, fit.small);
    EXPECT_EQ(text.find("// {\"name\": \"zb-h2\"") == std::string::npos, fit.large);
    const Ran swept = run_rrfp({"sweep", path, "--iterations", "1"});
    EXPECT_EQ(swept.status, 0) << swept.err << swept.out;
  }
}

TEST(Init, WrongNumbersAreNamed) {
  for (const std::vector<std::string>& alone :
       {std::vector<std::string>{"init"}, {"init", "--pp", "4", "--microbatches", "8"}}) {
    EXPECT_TRUE(
        run_rrfp(alone).err.starts_with("rrfp init: --model NAME is missing (`rrfp models`"))
        << run_rrfp(alone).err;
  }
  EXPECT_EQ(run_rrfp({"init", "--forward-ms", "4", "--pp", "4"}).err,
            "rrfp init: --microbatches is missing; expected a whole number from 1 to 65536\n");
  EXPECT_EQ(run_rrfp(init({"--weight-ms", "30"})).err,
            "rrfp init: --weight-ms: found 30; expected at most --backward-ms, of which it is a "
            "part\n");
  EXPECT_EQ(
      run_rrfp(init({"--model-gb", "80"})).err,
      "rrfp init: --model-gb leaves no memory for activations; expected less than --gpu-gb\n");
  for (const char* bad : {"nan", "inf", "-1", "1e400", "x", "1e12"}) {
    EXPECT_EQ(run_rrfp(init({"--latency-us", bad})).status, 2) << bad;
  }
}

// The scenarios that reproduce the project's numbers.
TEST(Init, ScenariosOfTheProjectRun) {
  const std::filesystem::path folder = std::string(RRFP_SOURCE_DIR) + "/experiments";
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    ++found;
    const Ran ran = run_rrfp({"sweep", entry.path().string(), "--iterations", "1"});
    EXPECT_EQ(ran.status, 0) << entry.path() << ran.err;
  }
  EXPECT_GE(found, 6);
}

}  // namespace
}  // namespace rrfp
