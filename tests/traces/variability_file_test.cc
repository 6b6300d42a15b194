// Goal: every model of "variability" says what its file says, its written form says the same again,
// and what is wrong is told with pointer, found and allowed.
#include "traces/variability_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "traces/scenario_file.h"

namespace rrfp {
namespace {

using nlohmann::json;

json scenario_with(const std::string& models) {
  json file = json::parse(R"({"schema": "rrfp.scenario/1",
    "pipeline": {"ranks": 4, "microbatches": 8, "split_backward": true},
    "durations": {"forward_ms": 10, "input_gradient_ms": 10, "weight_gradient_ms": 10},
    "data_parallel": {"replicas": 2}, "network": {"latency_us": 100},
    "policies": [{"name": "bf"}]})");
  file["variability"] = json::parse("[" + models + "]");
  return file;
}

Result<Scenario> read(const std::string& models) {
  const Result<JsonDocument> document = parse_json(scenario_with(models).dump(), "s.json");
  if (!document.ok()) return document.error();
  return read_scenario(*document);
}

std::string error_of(const std::string& model) {
  const Result<Scenario> result = read(model);
  return result.ok() ? "no error" : result.error().message;
}

constexpr const char* kModels = R"(
  {"model": "factor", "on": "compute", "scope": "gpu", "group": 2, "static": true,
   "mixture": [[0.97, {"normal": {"mean": 1, "sd": 0.02}}], [0.03, {"uniform": [1.05, 1.2]}]]},
  {"model": "factor", "on": "compute", "F": {"lognormal": {"cv": 0.1}}, "B": {"value": 2.5},
   "stages": [0, 3], "replicas": [1], "iterations": {"from": 3, "to": 9}, "known": true},
  {"model": "factor", "on": "compute", "quantiles": [0.9, 1, 1.4], "first_of_iteration": true,
   "probability": 0.0012, "tasks": ["F", "B"], "ranks": [2]},
  {"model": "factor", "on": "bandwidth", "scope": "link", "links": [[0, 1], [1, 0]], "value": 0.7},
  {"model": "extra", "on": "latency", "extra_ms": {"normal": {"mean": 30, "sd": 10, "min": 0}},
   "scope": "link", "episodes": {"on_ms": {"uniform": [50, 100]}, "off_ms": 0, "hit": "link",
   "count": [1, 3]}},
  {"model": "extra", "on": "compute", "extra_s": 1.45, "scope": "gpu",
   "steps": {"every": 265, "spread": 7, "same": false}, "first_of_iteration": true},
  {"model": "extra", "on": "input", "extra_us": {"exponential": {"mean": 5}}, "scope": "replica"},
  {"model": "hold", "on": "latency", "episodes": {"on_s": {"uniform": [0.5, 3]},
   "off_s": {"uniform": [5, 30]}, "cycles": [3, 10], "rest_s": {"log_uniform": [100, 1000]},
   "hit": "link"}, "from_preset": "link-flap", "modelled": true},
  {"model": "lengths", "length": {"beta": {"a": 0.257, "b": 1.067}}, "unit": 2, "messages": true,
   "costs": [{"tasks": ["F"], "constant": 0.89, "linear": 1.14},
             {"tasks": ["I"], "stages": [1], "quadratic": 2}, {"constant": 1}]},
  {"model": "lengths", "length": {"quantiles": [1, 2, 9]}, "unit": 4096, "pack": true, "costs": [],
   "known": false},
  {"model": "wave", "on": "compute", "amplitude": 0.01, "period_s": 86400, "phase": 0.25})";

TEST(VariabilityFile, SaysWhatItSays) {
  const Result<Scenario> scenario = read(kModels);
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  ASSERT_EQ(scenario->variability.size(), 11U);
  const auto& spread = std::get<DrawModel>(scenario->variability[0]);
  EXPECT_EQ(spread.scope, DrawScope::kGpu);
  EXPECT_EQ(spread.group, 2);
  EXPECT_TRUE(spread.is_static);
  EXPECT_TRUE(spread.known) << "what stays as it is, is known unless it says otherwise";
  const auto& kinds = std::get<DrawModel>(scenario->variability[1]);
  EXPECT_EQ(kinds.scope, DrawScope::kOperation);
  EXPECT_EQ(kinds.by_kind[1], Distribution(FixedValue{2.5}));
  EXPECT_EQ(kinds.selection.iterations, (IterationRange{3, 9}));
  const auto& degraded = std::get<DrawModel>(scenario->variability[4]);
  EXPECT_EQ(degraded.distribution, Distribution(Normal{30e6, 10e6, 0.0, {}}));
  const auto& episodes = std::get<Episodes>(degraded.timing);
  EXPECT_EQ(episodes.on_ns, Distribution(Uniform{50e6, 100e6}));
  EXPECT_EQ(episodes.most_hit, 3);
  const auto& gc = std::get<DrawModel>(scenario->variability[5]);
  EXPECT_EQ(gc.timing, DrawTiming(RepeatedSteps{265, 7, false}));
  EXPECT_EQ(gc.distribution, Distribution(FixedValue{1.45e9}));
  const auto& flap = std::get<DrawModel>(scenario->variability[7]);
  EXPECT_EQ(flap.effect, DrawEffect::kHold);
  EXPECT_EQ(flap.origin, (ModelOrigin{"link-flap", true}));
  const auto& lengths = std::get<MicrobatchLengths>(scenario->variability[8]);
  EXPECT_EQ(lengths.costs[0].linear, 1.14);
  EXPECT_EQ(std::get<MicrobatchLengths>(scenario->variability[9]).samples, 0);
}

TEST(VariabilityFile, WrittenFormSaysTheSame) {
  const Result<Scenario> scenario = read(kModels);
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  const std::string text = to_text(scenario_to_json(*scenario), JsonLayout::kReadable);
  const Result<Scenario> again = read_scenario(*parse_json(text, "resolved.json"));
  ASSERT_TRUE(again.ok()) << again.error().message;
  for (std::size_t i = 0; i < scenario->variability.size(); ++i) {
    EXPECT_EQ(again->variability[i], scenario->variability[i]) << i;
  }
  EXPECT_EQ(to_text(scenario_to_json(*again), JsonLayout::kReadable), text);
}

TEST(VariabilityFile, TellsWhatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"model": "facter", "on": "compute"})", "did you mean \"factor\"?"},
      {R"({"model": "factor", "on": "compute"})", "a distribution is needed: one of the keys"},
      {R"({"model": "factor", "on": "compute", "value": 1, "uniform": [1, 2]})",
       "/variability/0/uniform: found a second distribution"},
      {R"({"model": "factor", "on": "compute", "value": 1, "F": 2})", "give one of them"},
      {R"({"model": "factor", "on": "compute", "value": -1})", "expected a number from 0 to"},
      {R"({"model": "factor", "on": "compute", "uniform": [2, 1]})", "the lower end first"},
      {R"({"model": "factor", "on": "compute", "quantiles": [2, 1]})", "ascending order"},
      {R"({"model": "factor", "on": "compute", "quantiles": [2]})", "2 to 100000 values"},
      {R"({"model": "factor", "on": "compute", "beta": {"a": 0.01, "b": 1}})", "0.1 to 10000"},
      {R"({"model": "factor", "on": "compute", "log_uniform": [1e-300, 1e6]})",
       "at most 1e18 times where it begins"},
      {R"({"model": "factor", "on": "compute", "mixture": []})", "a weight above 0"},
      {R"({"model": "factor", "on": "compute", "scope": "link", "value": 1})",
       "for what is on compute"},
      {R"({"model": "factor", "on": "latency", "scope": "gpu", "value": 1})",
       "for what is on messages"},
      {R"({"model": "factor", "on": "latency", "stages": [1], "value": 1})",
       "a message has \"ranks\" or \"links\""},
      {R"({"model": "factor", "on": "compute", "ranks": [4], "value": 1})",
       "/variability/0/ranks/0: found 4; expected an integer from 0 to 3"},
      {R"({"model": "factor", "on": "compute", "replicas": [2], "value": 1})",
       "expected an integer from 0 to 1"},
      {R"({"model": "factor", "on": "latency", "links": [[0, 2]], "value": 1})",
       "no message goes from rank 0 to rank 2"},
      {R"({"model": "factor", "on": "input", "value": 2})", "an input can be late"},
      {R"({"model": "extra", "on": "bandwidth", "extra_ms": 2})", "bandwidth has a \"factor\""},
      {R"({"model": "extra", "on": "compute"})", "one of the keys \"extra_ns\""},
      {R"({"model": "hold", "on": "latency"})", "has \"episodes\""},
      {R"({"model": "factor", "on": "compute", "value": 2, "steps": {"every": 0}})", "from 1 to"},
      {R"({"model": "factor", "on": "compute", "value": 2, "group": 2})", "\"rank\" or \"gpu\""},
      {R"({"model": "factor", "on": "compute", "value": 2, "episodes": {"on_s": 0, "off_s": 0}})",
       "takes no time"},
      {R"({"model": "factor", "on": "compute", "value": 2, "episodes": {"on_ns": 1, "off_ns": 0}})",
       "would have more than 100000 episodes, one every 1 ns"},
      {R"({"model": "hold", "on": "latency", "episodes": {"on_s": 1e-300, "off_us": 1}})",
       "/variability/0/episodes: an iteration of"},
      {R"({"model": "lengths", "length": 2, "pack": true, "samples": 2, "costs": []})",
       "found \"pack\" and \"samples\""},
      {R"({"model": "lengths", "length": 0, "pack": true, "costs": []})",
       "more than 10000 sequences"},
      {R"({"model": "lengths", "file": "/nowhere/lengths.csv", "costs": []})",
       "/nowhere/lengths.csv"},
      {R"({"model": "wave", "on": "latency", "amplitude": 1, "period_s": 1})", "for a wave"},
  };
  for (const auto& [model, expected] : wrong) {
    const std::string message = error_of(model);
    EXPECT_NE(message.find(expected), std::string::npos) << model << "\n" << message;
    EXPECT_TRUE(message.starts_with("s.json: /variability/0")) << message;
  }
}

}  // namespace
}  // namespace rrfp
