// Goal: `rrfp presets` lists the whole library with what a user needs to choose, what it shows of a
// preset can be pasted into a scenario, and no output shows a modelled preset without saying so.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/experiments/run_for_tests.h"

namespace rrfp {
namespace {

using nlohmann::json;

constexpr const char* kNames[] = {"ideal",
                                  "healthy-dedicated",
                                  "healthy-noisy",
                                  "gpu-spread",
                                  "lemon-gpu",
                                  "slow-worker",
                                  "slow-host",
                                  "diurnal-thermal",
                                  "heavy-last-stage",
                                  "seqlen-longtail",
                                  "seqlen-empirical",
                                  "mm-encoder-burst",
                                  "moe-skew",
                                  "link-degraded-static",
                                  "link-degraded-dynamic",
                                  "fabric-congested",
                                  "failslow-episode",
                                  "link-flap",
                                  "gc-staggered",
                                  "gc-planned",
                                  "dataloader-stall"};

json scenario_with(const json& variability) {
  json file = json::parse(R"({"schema": "rrfp.scenario/1", "name": "job", "iterations": 3,
    "pipeline": {"ranks": 8, "microbatches": 16}, "data_parallel": {"replicas": 2},
    "durations": {"forward_ms": 10, "backward_ms": 20},
    "network": {"latency_us": 50, "activation_mib": 8, "bandwidth_gbyte_per_second": 20},
    "policies": [{"name": "1f1b", "hint": "1f1b", "fixed": true}, {"name": "bf", "hint": "bf"}]})");
  file["variability"] = variability;
  return file;
}

TEST(PresetsCommand, ListsAllWithParametersScopeAndSource) {
  const Ran text = run_rrfp({"presets"});
  ASSERT_EQ(text.status, 0) << text.err;
  const json list = json::parse(run_rrfp({"presets", "--json"}).out);
  std::set<std::string> names;
  for (const json& preset : list["presets"]) {
    names.insert(preset["name"]);
    EXPECT_NE(text.out.find(preset["name"].get<std::string>() +
                            (preset["modelled"] ? "  (modelled)\n" : "\n")),
              std::string::npos);
    EXPECT_NE(text.out.find(preset["source"].get<std::string>()), std::string::npos);
    EXPECT_NE(text.out.find(preset["scope"].get<std::string>()), std::string::npos);
    for (const json& parameter : preset["parameters"]) {
      EXPECT_FALSE(parameter["default"].get<std::string>().empty());
      EXPECT_FALSE(parameter["meaning"].get<std::string>().empty());
    }
  }
  EXPECT_EQ(names, std::set<std::string>(std::begin(kNames), std::end(kNames)));
}

// The entry with all parameters spelled out, the bare name, and the models that it stands for, all
// in a scenario of the shape for which they are shown, run and give the same times.
TEST(PresetsCommand, WhatItShowsCanBePasted) {
  const std::string folder = test_folder();
  for (const char* name : kNames) {
    const Ran shown = run_rrfp({"presets", name, "--json"});
    ASSERT_EQ(shown.status, 0) << shown.err;
    const json preset = json::parse(shown.out);
    std::vector<std::string> results;
    for (const json& variability : {json::array({name}), json::array({preset["example"]})}) {
      const std::string path =
          write_test_file(folder + "/s.json", scenario_with(variability).dump());
      const Ran ran = run_rrfp({"simulate", path, "--json"});
      ASSERT_EQ(ran.status, 0) << name << ": " << ran.err;
      results.push_back(ran.out);
      const bool told = std::string(name) == "ideal" ||
                        ran.err.find(std::string("presets: ") + name) != std::string::npos;
      EXPECT_TRUE(told) << ran.err;
      EXPECT_EQ(ran.err.find("(modelled)") != std::string::npos, preset["modelled"].get<bool>());
    }
    EXPECT_EQ(results[0], results[1]) << name;
    const std::string models =
        write_test_file(folder + "/m.json", scenario_with(preset["models"]).dump());
    EXPECT_EQ(run_rrfp({"simulate", models, "--json"}).status, 0) << name;
    const Ran text = run_rrfp({"presets", name});
    EXPECT_EQ(text.out.find("modelled: no public") != std::string::npos,
              preset["modelled"].get<bool>());
  }
}

TEST(PresetsCommand, SweepsSayWhatIsModelled) {
  const std::string folder = test_folder();
  json file = scenario_with(json::array());
  file["grid"] = {{"/variability",
                   {json::array({"healthy-dedicated"}),
                    json::array({"healthy-dedicated",
                                 {{"preset", "dataloader-stall"}, {"probability", 0.99}}})}}};
  const std::string path = write_test_file(folder + "/s.json", file.dump());
  const Ran ran = run_rrfp({"sweep", path, "--out", folder + "/out"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("presets: healthy-dedicated\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("presets: healthy-dedicated, dataloader-stall (modelled); modelled: no "
                         "public measurement"),
            std::string::npos);
  const json summary = json::parse(read_test_file(folder + "/out/summary.json"));
  EXPECT_EQ(summary["points"][0]["presets"],
            json::parse(R"([{"name": "healthy-dedicated", "modelled": false}])"));
  EXPECT_EQ(summary["points"][1]["presets"][1]["modelled"], true);
  EXPECT_GT(summary["points"][1]["policies"][0]["mean_ns"],
            summary["points"][0]["policies"][0]["mean_ns"]);
  const std::string csv = read_test_file(folder + "/out/summary.csv");
  EXPECT_NE(csv.find(",presets\n"), std::string::npos);
  EXPECT_NE(csv.find("\"healthy-dedicated, dataloader-stall (modelled)\""), std::string::npos);
  // The resolved file keeps it.
  EXPECT_NE(read_test_file(folder + "/out/scenario-1.json").find("\"modelled\": true"),
            std::string::npos);
}

TEST(PresetsCommand, NamesTheNearest) {
  const Ran ran = run_rrfp({"presets", "slow-workr"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("did you mean \"slow-worker\"?"), std::string::npos);
  const Ran far = run_rrfp({"presets", "nope"});
  EXPECT_NE(far.err.find("there is no preset \"nope\". `rrfp presets` lists"), std::string::npos)
      << far.err;
}

// Whoever runs for real is told the same of the presets as whoever simulates.
TEST(PresetsCommand, RunsForRealNoteThePresetsInUse) {
  const std::string path = write_test_file(test_folder() + "/a.json", R"({
    "schema": "rrfp.scenario/1", "iterations": 1,
    "pipeline": {"ranks": 2, "microbatches": 2}, "variability": ["dataloader-stall"],
    "durations": {"forward_us": 100, "backward_us": 200},
    "policies": [{"name": "1f1b", "hint": "1f1b", "fixed": true}]})");
  const std::string note =
      "note: presets: dataloader-stall (modelled); modelled: no public measurement stands behind "
      "it\n";
  const std::vector<std::string> run = {"run", path, "--transport", "threads"};
  const std::vector<std::string> train = {"train",   path, "--text",      path,
                                          "--steps", "1",  "--transport", "threads"};
  for (std::vector<std::string> command :
       {std::vector<std::string>{"simulate", path}, run, train}) {
    const Ran text = run_rrfp(command);
    ASSERT_EQ(text.status, 0) << command[0] << ": " << text.err;
    EXPECT_NE(text.out.find(note), std::string::npos) << command[0] << ": " << text.out;
    // What programs read stays JSON.
    command.emplace_back("--json");
    const Ran in_json = run_rrfp(command);
    EXPECT_EQ(in_json.out.find("note:"), std::string::npos) << command[0];
    EXPECT_NE(in_json.err.find(note), std::string::npos) << command[0] << ": " << in_json.err;
  }
}

}  // namespace
}  // namespace rrfp
