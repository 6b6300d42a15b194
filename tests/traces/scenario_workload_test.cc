// Goal: what scenarios of workloads say beyond one number for all stages:
// stashes by stage, and named schedules whose backwards are not split.
#include <gtest/gtest.h>

#include "scheduler_core/schedule.h"
#include "tests/traces/files_for_tests.h"
#include "traces/json_reader.h"
#include "traces/scenario_file.h"
#include "traces/scenario_resolve.h"
#include "traces/torch_csv.h"

namespace rrfp {
namespace {

Result<Scenario> read(const std::string& pipeline, const std::string& memory,
                      const std::string& hint) {
  const std::string text = R"({"schema": "rrfp.scenario/1", "pipeline": )" + pipeline +
                           R"(, "durations": {"forward_ms": 1, "input_gradient_ms": 2,
                              "weight_gradient_ms": 3}, "memory": )" +
                           memory + R"(, "policies": [{"name": "p", "hint": )" + hint +
                           R"(, "fixed": true}]})";
  const Result<JsonDocument> document = parse_json(text, "x.json");
  if (!document.ok()) return document.error();
  return read_scenario(*document);
}

std::string fault_of(const Result<Scenario>& scenario) {
  return scenario.ok() ? "none" : scenario.error().message;
}

constexpr const char* kChain = R"({"ranks": 3, "microbatches": 4, "split_backward": true})";

TEST(ScenarioWorkload, StashFractionsMayDifferByStage) {
  const Result<Scenario> scenario = read(
      kChain, R"({"activation_bytes": 100, "weight_stash_fraction": [1, 0.25, 0]})", R"("1f1b")");
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  const Result<ScenarioResolver> resolver = ScenarioResolver::create(*scenario);
  ASSERT_TRUE(resolver.ok());
  const Case world = *resolver->resolve(0, 0, 0);
  EXPECT_EQ(world.memory.weight_stash_bytes,
            (std::vector<std::int64_t>{100, 100, 100, 100, 25, 25, 25, 25, 0, 0, 0, 0}));
  // What is written reads back as the same.
  const std::string text = to_text(scenario_to_json(*scenario), JsonLayout::kReadable);
  const Result<Scenario> again = read_scenario(*parse_json(text, "x.json"));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->memory, scenario->memory);
  EXPECT_EQ(fault_of(read(kChain, R"({"weight_stash_fraction": [1, 1]})", R"("1f1b")")),
            "x.json: /memory/weight_stash_fraction: found an array of 2; expected an array of 3, "
            "one per stage");
  EXPECT_EQ(fault_of(read(kChain, R"({"weight_stash_fraction": [1, 2, 1]})", R"("1f1b")"))
                .find("x.json: /memory/weight_stash_fraction/1: found 2"),
            0u);
}

TEST(ScenarioWorkload, WholeBackwardsAreThoseOfTheUnsplitPipeline) {
  for (const char* name : {"1f1b", "eager-1f1b", "gpipe", "bf"}) {
    const Result<Scenario> scenario =
        read(kChain, "{}", R"({"whole_backward": true, "name": ")" + std::string(name) + "\"}");
    ASSERT_TRUE(scenario.ok()) << scenario.error().message;
    ProgramSpec unsplit = scenario->pipeline;
    unsplit.split_backward = false;
    HintSpec hint;
    hint.name = name;
    const Result<Schedule> wanted = make_schedule(hint, *Program::create(unsplit));
    EXPECT_EQ(scenario->policies[0].policy.hint.order, wanted->ranks) << name;
    // Every backward is one task in the split pipeline too.
    const Result<Program> split = Program::create(scenario->pipeline);
    const Result<Program> fitted = fit_program(*split, *wanted);
    ASSERT_TRUE(fitted.ok()) << fitted.error().message;
    EXPECT_TRUE(fitted->fused(1, 2));
  }
}

// A stage that only passes a gradient on has nothing to fuse; a frozen one has no backward.
TEST(ScenarioWorkload, WholeBackwardsLeaveFrozenStagesAlone) {
  const std::string frozen =
      R"({"ranks": 3, "microbatches": 2, "split_backward": true, "stages": [
        {"rank": 0, "backward": "none"}, {"rank": 1}, {"rank": 2, "backward": "input"}]})";
  const Result<Scenario> scenario =
      read(frozen, "{}", R"({"whole_backward": true, "name": "1f1b"})");
  ASSERT_TRUE(scenario.ok()) << scenario.error().message;
  const Result<ScenarioResolver> resolver = ScenarioResolver::create(*scenario);
  ASSERT_TRUE(resolver.ok());
  const Result<Case> world = resolver->resolve(0, 0, 0);
  ASSERT_TRUE(world.ok()) << world.error().message;
  std::vector<std::string> last;
  for (const Task& task : world->policy.hint.order[2]) last.push_back(to_string(task));
  EXPECT_EQ(last, (std::vector<std::string>{"2F0", "2I0", "2F1", "2I1"}));
  EXPECT_EQ(world->policy.hint.order[0].size(), 2u);
  EXPECT_TRUE(fit_program(world->program, Schedule{world->policy.hint.order}).ok());
}

TEST(ScenarioWorkload, WholeBackwardsThatCannotBeAreNamed) {
  EXPECT_EQ(fault_of(read(kChain, "{}", R"({"whole_backward": true, "name": "zb-h1"})"))
                .find("x.json: /policies/0/hint: schedule zb-h1 needs split backwards"),
            0u);
  EXPECT_EQ(fault_of(read(kChain, "{}", R"({"whole_backward": 1, "name": "1f1b"})"))
                .find("x.json: /policies/0/hint/whole_backward: found 1"),
            0u);
  EXPECT_NE(
      fault_of(read(kChain, "{}", R"({"whole_backward": true, "name": "1f1c"})")).find("\"1f1b\""),
      std::string::npos);
  // Without splitting there is nothing to say.
  const Result<Scenario> off = read(kChain, "{}", R"({"whole_backward": false, "name": "1f1b"})");
  ASSERT_TRUE(off.ok()) << off.error().message;
  EXPECT_TRUE(off->policies[0].policy.hint.order.empty());
}

}  // namespace
}  // namespace rrfp
