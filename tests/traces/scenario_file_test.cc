// Goal: a scenario says what its file says, its resolved file says the same again, and every way in
// which a file can be wrong gives one message with pointer, found and allowed.
#include "traces/scenario_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "scheduler_core/random.h"
#include "traces/scenario_budget.h"

namespace rrfp {
namespace {

using nlohmann::json;

json good_scenario() {
  return json::parse(R"({
    "schema": "rrfp.scenario/1", "name": "two links", "seed": 7, "iterations": 20,
    "pipeline": {"shape": "linear", "ranks": 4, "microbatches": 3, "split_backward": true},
    "durations": {"forward_ms": 18.522, "input_gradient_us": [1, 2, 3, 4.5],
                  "weight_gradient_ns": [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]},
    "input_ready_us": [0, 1, 2.5], "dispatch_us": 3, "queue_depth": 2,
    "tensor_parallel": {"lanes": 2, "coordination": "vote", "vote_us": 1, "announce_us": 2},
    "data_parallel": {"replicas": 2, "gradient_sync_ms": [1, 2, 3, 4], "optimizer_ms": 5},
    "network": {"mode": "eager", "bandwidth_gbit_per_second": 200, "latency_us": 601,
                "notice_us": 5, "activation_mib": 16, "gradient_mib": [8, 8, 8, 8],
                "message_us": 9, "link_delays": [{"from": 0, "to": 1, "delay_ms": 10}]},
    "memory": {"activation_gib": 1.5, "weight_stash_fraction": 0.25,
               "budget_activations": "zb-h1"},
    "variability": [
      {"model": "lognormal", "on": "compute", "cv": 0.1},
      {"model": "lognormal", "on": "compute", "scope": "microbatch", "cv": 0.5},
      {"model": "lognormal", "on": "latency", "cv": 1},
      {"model": "spikes", "on": "latency", "probability": 0.05, "extra_ms": 3}],
    "policies": [
      {"name": "1f1b", "hint": "1f1b", "fixed": true, "budget_activations": "1f1b"},
      {"name": "ready", "hint": {"name": "bfw"}, "window": "none"},
      {"name": "patient", "hint": "zb-h1", "anticipation": true, "arrange": "hill"},
      {"name": "own", "hint": {"name": "random", "seed": 3}, "window": 4,
       "anticipation": {"reach_permille": 1, "grace_permille": 2}, "budget_gib": [6, null, 6, 6]},
      {"name": "blocking", "hint": "1f1b", "fixed": true, "network_mode": "rendezvous"}],
    "baseline": "1f1b",
    "grid": {"/network/latency_us": [10, 100], "/memory/budget_activations": ["1f1b", 4, 9]}
  })");
}

Result<Scenario> read_text(const std::string& text) {
  const Result<JsonDocument> document = parse_json(text, "s.json", {.comments = true});
  if (!document.ok()) return document.error();
  return read_scenario(*document);
}

std::string error_of(const json& file) {
  const Result<Scenario> result = read_text(file.dump());
  return result.ok() ? "no error" : result.error().message;
}

TEST(ScenarioFile, SaysWhatItSays) {
  const Result<Scenario> read = read_text(good_scenario().dump());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->seed, 7U);
  EXPECT_EQ(read->iterations, 20);
  EXPECT_EQ(read->pipeline.stages.size(), 4U);
  EXPECT_EQ(read->pipeline.stages[3].predecessors, std::vector<int>{2});
  EXPECT_EQ(read->forward_ns.at(3, 2), 18'522'000);
  EXPECT_EQ(read->backward_ns.at(3, 0), 4500);
  EXPECT_EQ(read->weight_ns.at(2, 1), 8);
  EXPECT_EQ(read->input_ready_ns, (std::vector<std::int64_t>{0, 1000, 2500}));
  EXPECT_EQ(read->network.bytes_per_second, 25'000'000'000);
  EXPECT_EQ(read->network.activation_bytes.at(1, 1), 16 << 20);
  EXPECT_EQ(read->network.link_delays, (std::vector<LinkDelay>{{0, 1, 10'000'000}}));
  EXPECT_EQ(read->memory.activation_bytes.at(0, 0), 1'610'612'736);
  EXPECT_EQ(read->memory.budget.like, "zb-h1");
  EXPECT_EQ(read->data_parallel.gradient_sync_ns.at(2, 0), 3'000'000);
  ASSERT_EQ(read->variability.size(), 4U);
  EXPECT_EQ(read->variability[0],
            VariabilityModel(LognormalCompute{ComputeScope::kOperation, 0.1, false}));
  EXPECT_EQ(read->variability[1],
            VariabilityModel(LognormalCompute{ComputeScope::kMicrobatch, 0.5, true}));
  EXPECT_EQ(read->variability[3], VariabilityModel(LatencySpikes{0.05, 3'000'000}));
  EXPECT_EQ(read->policies[0].policy.window, 1);
  EXPECT_EQ(read->policies[1].policy.window, kNoWindow);
  EXPECT_EQ(read->policies[2].policy.anticipation, (Anticipation{750, 500}));
  EXPECT_EQ(read->policies[3].policy.window, 4);
  EXPECT_EQ(read->policies[3].policy.hint.seed, 3U);
  EXPECT_FALSE(read->policies[3].budget->bytes[1].has_value());
  EXPECT_EQ(read->policies[4].mode, NetworkMode::kRendezvous);
  EXPECT_EQ(read->baseline, 0);
}

TEST(ScenarioFile, ResolvedFileSaysTheSame) {
  const Result<Scenario> read = read_text(good_scenario().dump());
  ASSERT_TRUE(read.ok());
  const std::string text = to_text(scenario_to_json(*read), JsonLayout::kReadable);
  const Result<Scenario> again = read_text(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(to_text(scenario_to_json(*again), JsonLayout::kReadable), text);
  EXPECT_EQ(read->network, again->network);
  EXPECT_EQ(read->memory, again->memory);
  EXPECT_EQ(read->variability, again->variability);
  EXPECT_EQ(read->data_parallel, again->data_parallel);
  EXPECT_EQ(read->weight_ns, again->weight_ns);
}

// A policy with whole backwards is written as the order that it comes to, under its name.
TEST(ScenarioFile, AnOrderKeepsItsName) {
  json file = good_scenario();
  file["policies"][0]["hint"] = {{"name", "1f1b"}, {"whole_backward", true}};
  const Result<Scenario> read = read_text(file.dump());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const HintSpec& hint = read->policies[0].policy.hint;
  EXPECT_EQ(hint.name, "1f1b with whole backwards");
  EXPECT_FALSE(hint.order.empty());
  const Result<Scenario> again = read_text(to_text(scenario_to_json(*read), JsonLayout::kCompact));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->policies[0].policy.hint, hint);
  file["policies"][0]["hint"] = {{"name", "1f1b"}, {"called", "mine"}};
  EXPECT_EQ(error_of(file),
            "s.json: /policies/0/hint/called: only an \"order\" is called something; a \"name\" is "
            "one");
}

// Also where it is that of a hint; and an order without a name stays without one.
TEST(ScenarioFile, AnOrderIsCalledWhatItIsOrNothing) {
  json file = good_scenario();
  file["policies"][0]["hint"] = {{"name", "1f1b"}, {"whole_backward", true}};
  const Result<Scenario> named = read_text(file.dump());
  ASSERT_TRUE(named.ok()) << named.error().message;
  for (const std::string name : {"bf", ""}) {
    Scenario one = *named;
    one.policies[0].policy.hint.name = name;
    const std::string text = to_text(scenario_to_json(one), JsonLayout::kCompact);
    EXPECT_EQ(text.find("\"called\"") == std::string::npos, name.empty()) << text;
    const Result<Scenario> again = read_text(text);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again->policies[0].policy.hint.name, name);
  }
}

TEST(ScenarioFile, TakesCommentsAndTheLeastThatIsNeeded) {
  const Result<Scenario> read = read_text(R"({
    // What a person starts with.
    "schema": "rrfp.scenario/1", "pipeline": {"ranks": 2, "microbatches": 4},
    "durations": {"forward_ms": 1, "backward_ms": 2}, /* all stages */
    "policies": [{"name": "bf"}] })");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->iterations, 1);
  EXPECT_EQ(read->policies[0].policy.hint.name, "bf");
  EXPECT_EQ(read->memory.activation_bytes.at(0, 0), 1);
}

TEST(ScenarioFile, PlacesStagesByShape) {
  const auto ranks_of = [](const std::string& pipeline) {
    json file = good_scenario();
    file["pipeline"] = json::parse(pipeline);
    file["durations"] = {{"forward_ms", 1}, {"backward_ms", 2}};
    for (const char* key : {"data_parallel", "network", "input_ready_us", "grid"}) file.erase(key);
    file["policies"] = {{{"name", "1f1b"}}};
    const Result<Scenario> read = read_text(file.dump());
    EXPECT_TRUE(read.ok()) << read.error().message;
    std::vector<int> ranks;
    for (const StageSpec& stage : read->pipeline.stages) ranks.push_back(stage.rank);
    return ranks;
  };
  EXPECT_EQ(ranks_of(R"({"ranks": 3, "microbatches": 2})"), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(ranks_of(R"({"ranks": 2, "microbatches": 2, "shape": "looped", "chunks": 3})"),
            (std::vector<int>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(ranks_of(R"({"ranks": 3, "microbatches": 2, "shape": "v"})"),
            (std::vector<int>{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(ranks_of(R"({"ranks": 2, "microbatches": 2, "stages": [{"rank": 1}, {"rank": 0}]})"),
            (std::vector<int>{1, 0}));
}

TEST(ScenarioFile, WholeBackwardMayBeGivenInParts) {
  json file = good_scenario();
  file["pipeline"]["split_backward"] = false;
  const Result<Scenario> read = read_text(file.dump());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->backward_ns.at(1, 2), 2000 + 6);
  EXPECT_EQ(read->backward_ns.at(3, 0), 4500 + 10);
}

TEST(ScenarioFile, KnowsThePeaksOfSchedules) {
  ProgramSpec four{.ranks = 4,
                   .microbatches = 8,
                   .split_backward = true,
                   .ordered_accumulation = false,
                   .stages = {{0, {}}, {1, {0}}, {2, {1}}, {3, {2}}}};
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(peak_activations("gpipe", four), (List{8, 8, 8, 8}));
  EXPECT_EQ(peak_activations("1f1b", four), (List{4, 3, 2, 1}));
  EXPECT_EQ(peak_activations("eager-1f1b", four), (List{7, 5, 3, 1}));
  EXPECT_EQ(peak_activations("zb-h1", four), (List{4, 4, 4, 4}));
  EXPECT_EQ(peak_activations("zb-h2", four), (List{7, 7, 7, 7}));
  for (int stage = 4; stage < 8; ++stage) four.stages.push_back({stage - 4, {stage - 1}});
  EXPECT_EQ(peak_activations("interleaved-1f1b", four), (List{11, 9, 7, 5}));
  EXPECT_EQ(peak_activations("zb-v", four), (List{8, 8, 8, 8}));
  EXPECT_TRUE(peak_activations("bf", four).empty());
}

TEST(ScenarioGrid, HasAllPointsLastAxisFastest) {
  const Result<JsonDocument> document = parse_json(good_scenario().dump(), "s.json");
  const Result<std::vector<GridPoint>> points = expand_grid(*document);
  ASSERT_TRUE(points.ok()) << points.error().message;
  ASSERT_EQ(points->size(), 6U);
  // nlohmann sorts keys, so that "/memory" comes before "/network".
  EXPECT_EQ((*points)[0].scenario.memory.budget.like, "1f1b");
  EXPECT_EQ((*points)[0].scenario.network.latency_ns, 10'000);
  EXPECT_EQ((*points)[1].scenario.network.latency_ns, 100'000);
  EXPECT_EQ((*points)[5].scenario.memory.budget.activations, (std::vector<std::int64_t>(4, 9)));
  EXPECT_EQ(*(*points)[5].values[1].integer(), 100);
}

TEST(ScenarioGrid, NamesThePointThatIsWrong) {
  json file = good_scenario();
  file["grid"] = {{"/network/latency_us", {10, -1}}};
  const Result<JsonDocument> document = parse_json(file.dump(), "s.json");
  EXPECT_EQ(
      expand_grid(*document).error().message.rfind("s.json: /network/latency_us: found -1", 0), 0U);
  EXPECT_NE(expand_grid(*document).error().message.find("(with /network/latency_us = -1)"),
            std::string::npos);
}

TEST(ScenarioFile, HintsComeFromTorchFilesBesideIt) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("rrfp-scenario-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "own.csv") << "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  const auto write = [&](int ranks) {
    std::ofstream(folder / "s.json")
        << R"({"schema": "rrfp.scenario/1", "pipeline": {"microbatches": 2, "ranks": )" << ranks
        << R"(}, "durations": {"forward_ms": 1, "backward_ms": 2},
             "policies": [{"name": "own", "hint": {"csv": "own.csv"}, "fixed": true}]})";
  };
  write(2);
  const Result<Scenario> read = read_scenario_file((folder / "s.json").string());
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->policies[0].policy.hint.order.size(), 2U);
  EXPECT_EQ(read->policies[0].policy.hint.order[1][2], (Task{1, Kind::kForward, 1}));
  write(3);
  EXPECT_NE(read_scenario_file((folder / "s.json").string())
                .error()
                .message.find("/policies/0/hint: found a schedule of 2 ranks; expected 3"),
            std::string::npos);
  std::filesystem::remove_all(folder);
}

struct Change {
  std::string pointer;
  std::string value;    ///< JSON; empty: the member is removed
  std::string message;  ///< after "s.json: "
};

class ScenarioError : public testing::TestWithParam<Change> {};

TEST_P(ScenarioError, NamesPointerFoundAndAllowed) {
  const Change& change = GetParam();
  json file = good_scenario();
  const json::json_pointer pointer(change.pointer);
  if (change.value.empty()) {
    ASSERT_EQ(file[pointer.parent_pointer()].erase(pointer.back()), 1U);
  } else {
    file[pointer] = json::parse(change.value);
  }
  const std::string message = error_of(file);
  EXPECT_EQ(message.rfind("s.json: " + change.message, 0), 0U) << message;
}

INSTANTIATE_TEST_SUITE_P(
    All, ScenarioError,
    testing::Values(
        Change{"/schema", "\"rrfp.case/1\"", "/schema: found \"rrfp.case/1\"; expected one of"},
        Change{"/itertions", "3",
               "top level: unknown key \"itertions\"; did you mean \"iterations\"?"},
        Change{"/seed", "-1", "/seed: found -1; expected an integer of at least 0"},
        Change{"/iterations", "0", "/iterations: found 0; expected an integer from 1 to 10000000"},
        Change{"/pipeline/shape", "\"ring\"",
               "/pipeline/shape: found \"ring\"; expected one of \"linear\", \"looped\", \"v\""},
        Change{"/pipeline/shape", "\"looped\"", "/pipeline: the key \"chunks\" is missing"},
        Change{"/pipeline/chunks", "2",
               "/pipeline: \"chunks\" is only given with the shape \"looped\"; found it with "
               "\"linear\""},
        Change{"/pipeline/stages", "[{\"rank\": 0}]",
               "/pipeline: a pipeline has either a \"shape\" or \"stages\"; found both"},
        Change{"/pipeline/ranks", "1000000", "/pipeline/ranks: found 1000000; expected"},
        Change{"/durations/backward_ms", "1",
               "/durations/backward_ms: found the whole backward of a pipeline with"},
        Change{"/durations/forward_ms", "",
               "/durations: one of the keys \"forward_ns\", \"forward_us\""},
        Change{"/durations/forward_us", "1",
               "/durations/forward_ms: \"forward\" is given in two units; give it in one"},
        Change{"/durations/input_gradient_us", "[1]",
               "/durations/input_gradient_us: found an array of 1; expected an array of 4, one "
               "per stage"},
        Change{"/durations/foward_ms", "1",
               "/durations: unknown key \"foward_ms\"; did you mean \"forward_ms\"?"},
        Change{"/input_ready_us", "3", "/input_ready_us: found 3; expected an array of 3, one per"},
        Change{"/tensor_parallel/vote_us", "null",
               "/tensor_parallel/vote_us: found null; expected"},
        Change{"/data_parallel/replicas", "0", "/data_parallel/replicas: found 0; expected"},
        Change{"/network/latency", "1", "/network: unknown key \"latency\"; did you mean"},
        Change{"/network/bandwidth_gbit_per_second", "\"fast\"",
               "/network/bandwidth_gbit_per_second: found \"fast\"; expected a number"},
        Change{"/network/link_delays/0/to", "0",
               "/network/link_delays/0: a link joins two different ranks"},
        Change{"/network/link_delays/0/delay_ms", "",
               "/network/link_delays/0: one of the keys \"delay_ns\""},
        Change{"/memory/weight_stash_fraction", "1.5",
               "/memory/weight_stash_fraction: found 1.5; expected a number from 0 to 1"},
        Change{"/memory/budget_activations", "\"zb-h3\"",
               "/memory/budget_activations: found \"zb-h3\"; expected an integer, one per rank, or "
               "the peak of one of \"zb-h1\""},
        Change{"/memory/budget_activations", "0", "/memory/budget_activations: found 0; expected"},
        Change{"/memory/budget_gib", "3",
               "/memory: found a budget in bytes and one in activations; give one of them"},
        Change{"/policies/3/budget_gib", "[1]",
               "/policies/3/budget_gib: found an array of 1; expected an array of 4, one per rank"},
        Change{"/variability/0", "5",
               "/variability/0: found 5; expected the name of a preset, or a model"},
        Change{"/variability/0", "\"healthy\"",
               "/variability/0: there is no preset \"healthy\"; did you mean "},
        Change{"/variability/0/model", "\"gamma\"",
               "/variability/0/model: found \"gamma\"; expected"},
        Change{"/variability/0/cv", "", "/variability/0: the key \"cv\" is missing"},
        Change{"/variability/0/cv", "-0.1",
               "/variability/0/cv: found -0.1; expected a number from"},
        Change{"/variability/0/scope", "\"link\"",
               "/variability/0/scope: found \"link\"; expected"},
        Change{"/variability/2/known", "true", "/variability/2: unknown key \"known\""},
        Change{"/variability/3/on", "\"compute\"",
               "/variability/3/on: found \"compute\"; expected \"latency\" for spikes"},
        Change{"/variability/3/probability", "2", "/variability/3/probability: found 2; expected"},
        Change{"/policies", "[]", "/policies: found an array of 0; expected at least one policy"},
        Change{"/policies/1/name", "\"1f1b\"",
               "/policies/1/name: two policies are called \"1f1b\"; names must differ"},
        Change{"/policies/1/window", "0",
               "/policies/1/window: found 0; expected \"none\" or an integer of at least 1"},
        Change{"/policies/1/window", "\"all\"",
               "/policies/1/window: found \"all\"; expected \"none\""},
        Change{"/policies/1/fixed", "true", "/policies/1: found \"window\" and \"fixed\""},
        Change{"/policies/1/hint", "7", "/policies/1/hint: found 7; expected an object"},
        Change{"/policies/1/hint", "{\"csv\": \"absent.csv\"}",
               "/policies/1/hint: absent.csv: cannot read"},
        Change{"/policies/1/network_mode", "\"x\"",
               "/policies/1/network_mode: found \"x\"; expected"},
        Change{"/baseline", "\"none\"", "/baseline: found \"none\"; expected the name of one of"},
        Change{"/grid", "[]", "/grid: found an array of 0; expected an object such as"},
        Change{"/grid", "{\"/nowhere/at\": [1]}",
               "/grid: \"/nowhere/at\" leads to nothing in the file: give it a value there"},
        Change{"/grid", "{\"network/latency_us\": [1]}",
               "/grid: \"network/latency_us\" is no JSON pointer; expected one such as"},
        Change{"/grid", "{\"/seed\": []}",
               "/grid/~1seed: found an array of 0; expected at least"}));

// As in mutation_test.cc: damaged scenarios give errors or scenarios that can be written again.
TEST(ScenarioFile, DamageNeverCrashes) {
  const std::string whole = good_scenario().dump();
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random({.seed = seed});
    std::string text = whole;
    for (std::uint64_t i = 1 + random.below(3); i > 0; --i) {
      constexpr std::string_view kSpice = "0123456789{}[],:\"-.e";
      const std::size_t at = random.below(text.size());
      if (random.below(3) == 0) {
        text.erase(at, random.below(12));
      } else {
        text[at] = kSpice[random.below(kSpice.size())];
      }
    }
    const Result<Scenario> read = read_text(text);
    if (!read.ok()) {
      ASSERT_EQ(read.error().message.rfind("s.json: ", 0), 0U) << read.error().message;
      continue;
    }
    const std::string written = to_text(scenario_to_json(*read), JsonLayout::kCompact);
    const Result<Scenario> again = read_text(written);
    ASSERT_TRUE(again.ok()) << again.error().message;
    ASSERT_EQ(to_text(scenario_to_json(*again), JsonLayout::kCompact), written);
  }
}

}  // namespace
}  // namespace rrfp
