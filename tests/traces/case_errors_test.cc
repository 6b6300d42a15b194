// Goal: every way in which a case file can be wrong gives one message with the JSON pointer, what
// was found and what is allowed. Each row changes one thing of a case that is right.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "traces/case_file.h"

namespace rrfp {
namespace {

using nlohmann::json;

// Two ranks, three stages (0 and 2 on rank 0), two microbatches, split backward, two lanes.
json good_case() {
  return json::parse(R"({
    "schema": "rrfp.case/1", "name": "good",
    "pipeline": {"ranks": 2, "microbatches": 2, "split_backward": true,
      "ordered_accumulation": false,
      "stages": [{"rank": 0, "predecessors": []}, {"rank": 1, "predecessors": [0]},
                 {"rank": 0, "predecessors": [1], "backward": "input"}]},
    "durations_ns": {"F": [[1, 2], [3, 4], [5, 6]], "I": [[1, 2], [3, 4], [5, 6]],
                     "W": [[1, 2], [3, 4], [5, 6]]},
    "expected_ns": {"F": [[1, 2], [3, 4], [5, 6]], "I": [[1, 2], [3, 4], [5, 6]],
                    "W": [[1, 2], [3, 4], [5, 6]]},
    "input_ready_ns": [0, 7],
    "dispatch_ns": 1, "queue_depth": 2,
    "tensor_parallel": {"lanes": 2, "coordination": "leader", "vote_ns": 1, "announce_ns": 2},
    "network": {"mode": "eager", "bytes_per_second": 1000, "notice_ns": 3, "message_ns": 4,
      "link_delay_ns": [{"from": 0, "to": 1, "ns": 5}],
      "message_bytes": {"F": [[1, 2], [3, 4], [5, 6]], "B": [[1, 2], [3, 4], [5, 6]]},
      "latency_ns": [{"kind": "F", "from": 0, "to": 1, "ns": [[1, 2], [3, 4]]},
                     {"kind": "B", "from": 2, "to": 1, "ns": [5, 6]}],
      "expected_latency_ns": [{"kind": "F", "from": 1, "to": 2, "ns": [1, 2]}]},
    "memory": {"activation_bytes": [[5, 5], [5, 5], [5, 5]],
               "weight_stash_bytes": [[2, 2], [5, 0], [1, 1]], "budget_bytes": [20, null]},
    "policy": {"hint": {"order": [["0F0", "2F0"], ["1F0"]]}, "window": 3, "arrange": "hill",
               "anticipation": {"reach_permille": 750, "grace_permille": 500}}
  })");
}

Result<Case> read_text(const std::string& text) {
  const Result<JsonDocument> document = parse_json(text, "case.json");
  if (!document.ok()) return document.error();
  return read_case(*document);
}

std::string error_of(const json& file) {
  const Result<Case> result = read_text(file.dump());
  return result.ok() ? "no error" : result.error().message;
}

TEST(CaseErrors, TheGoodCaseIsGood) { EXPECT_EQ(error_of(good_case()), "no error"); }

struct Change {
  std::string pointer;
  std::string value;    ///< JSON; empty: the member is removed
  std::string message;  ///< after "case.json: "
};

class CaseError : public testing::TestWithParam<Change> {};

TEST_P(CaseError, NamesPointerFoundAndAllowed) {
  const Change& change = GetParam();
  json file = good_case();
  const json::json_pointer pointer(change.pointer);
  if (change.value.empty()) {
    json& parent = file[pointer.parent_pointer()];
    ASSERT_EQ(parent.erase(pointer.back()), 1U);
  } else {
    file[pointer] = json::parse(change.value);
  }
  const std::string message = error_of(file);
  EXPECT_EQ(message.rfind("case.json: " + change.message, 0), 0U) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Top, CaseError,
    testing::Values(
        Change{"/schema", "", "top level: the key \"schema\" is missing"},
        Change{"/schema", "\"rrfp.case/2\"",
               "/schema: found \"rrfp.case/2\"; expected one of \"rrfp.case/1\""},
        Change{"/pipelin", "{}",
               "top level: unknown key \"pipelin\"; did you mean \"pipeline\"? Known are"},
        Change{"/name", "7", "/name: found 7; expected a text in double quotes"},
        Change{"/pipeline", "", "top level: the key \"pipeline\" is missing"},
        Change{"/pipeline", "[1]", "/pipeline: found an array of 1; expected an object"},
        Change{"/durations_ns", "", "top level: the key \"durations_ns\" is missing"},
        Change{"/dispatch_ns", "-1", "/dispatch_ns: found -1; expected an integer of at least 0"},
        Change{"/dispatch_ns", "1.0",
               "/dispatch_ns: found 1.0; expected an integer of at least 0, written without "
               "fraction and exponent"},
        Change{"/dispatch_ns", "null", "/dispatch_ns: found null; expected an integer"},
        Change{"/dispatch_ns", "\"1\"", "/dispatch_ns: found \"1\"; expected an integer"},
        Change{"/dispatch_ns", "true", "/dispatch_ns: found true; expected an integer"},
        Change{"/queue_depth", "0",
               "/queue_depth: found 0; expected an integer from 1 to 2147483647"},
        Change{"/input_ready_ns", "[0]",
               "/input_ready_ns: found an array of 1; expected an array of 2, one per microbatch"},
        Change{"/input_ready_ns/1", "-5", "/input_ready_ns/1: found -5; expected an integer"}));

INSTANTIATE_TEST_SUITE_P(
    Pipeline, CaseError,
    testing::Values(
        Change{"/pipeline/ranks", "0",
               "/pipeline/ranks: found 0; expected an integer from 1 to 4096"},
        Change{"/pipeline/ranks", "2000000000", "/pipeline/ranks: found 2000000000; expected"},
        Change{"/pipeline/microbatches", "", "/pipeline: the key \"microbatches\" is missing"},
        Change{"/pipeline/microbatches", "0", "/pipeline/microbatches: found 0; expected"},
        Change{"/pipeline/microbatches", "2147483647",
               "/pipeline: stages times microbatches is too large"},
        Change{"/pipeline/split_backward", "1",
               "/pipeline/split_backward: found 1; expected true or false"},
        Change{"/pipeline/stages", "[]", "/pipeline: stages is empty"},
        Change{"/pipeline/stages", "{}", "/pipeline/stages: found an object; expected an array"},
        Change{"/pipeline/stages/1/rank", "2",
               "/pipeline/stages/1/rank: found 2; expected an integer from 0 to 1"},
        Change{"/pipeline/stages/1/rank", "", "/pipeline/stages/1: the key \"rank\" is missing"},
        Change{"/pipeline/stages/1/predecesors", "[0]",
               "/pipeline/stages/1: unknown key \"predecesors\"; did you mean \"predecessors\"?"},
        Change{"/pipeline/stages/1/predecessors", "[1]",
               "/pipeline/stages/1/predecessors/0: found 1; expected an integer from 0 to 0"},
        Change{"/pipeline/stages/0/predecessors", "[0]",
               "/pipeline/stages/0/predecessors/0: found 0; expected nothing: stage 0"},
        Change{"/pipeline/stages/2/predecessors", "[1, 1]",
               "/pipeline: stage 2: a predecessor is named twice"},
        Change{"/pipeline/stages/2/backward", "\"None\"",
               "/pipeline/stages/2/backward: found \"None\"; expected one of \"full\", \"input\", "
               "\"none\"; did you mean \"none\"?"},
        Change{"/pipeline/stages/2/backward", "\"none\"",
               "/pipeline: stage 2: has backward \"none\" but its predecessor 1"}));

INSTANTIATE_TEST_SUITE_P(
    Durations, CaseError,
    testing::Values(
        Change{"/durations_ns/W", "", "/durations_ns: the key \"W\" is missing"},
        Change{"/durations_ns/B", "[]", "/durations_ns: unknown key \"B\"; did you mean"},
        Change{"/pipeline/split_backward", "false", "/durations_ns: unknown key \"I\""},
        Change{"/durations_ns/F", "[[1, 2], [3, 4]]",
               "/durations_ns/F: found an array of 2; expected an array of 3, one per stage"},
        Change{"/durations_ns/F/1", "[1, 2, 3]",
               "/durations_ns/F/1: found an array of 3; expected an array of 2, one per "
               "microbatch"},
        Change{"/durations_ns/F/1", "7", "/durations_ns/F/1: found 7; expected an array of 2"},
        Change{"/durations_ns/I/2/1", "-1",
               "/durations_ns/I/2/1: found -1; expected an integer of at least 0"},
        Change{"/durations_ns/I/2/1", "9223372036854775807",
               "top level: durations, latencies and other times are too large together"},
        Change{"/durations_ns/I/2/1", "9223372036854775808",
               "/durations_ns/I/2/1: found 9223372036854775808; an integer may be at most"},
        Change{"/durations_ns/I/2/1", "1.5", "/durations_ns/I/2/1: found 1.5; expected"},
        Change{"/expected_ns/F", "", "/expected_ns: the key \"F\" is missing"},
        Change{"/expected_ns/F/0/0", "\"x\"", "/expected_ns/F/0/0: found \"x\"; expected"}));

INSTANTIATE_TEST_SUITE_P(
    Groups, CaseError,
    testing::Values(
        Change{"/tensor_parallel/lanes", "0",
               "/tensor_parallel/lanes: found 0; expected an integer from 1 to 64"},
        Change{"/tensor_parallel/lane", "1",
               "/tensor_parallel: unknown key \"lane\"; did you mean \"lanes\"?"},
        Change{"/tensor_parallel/coordination", "\"votes\"",
               "/tensor_parallel/coordination: found \"votes\"; expected one of \"vote\", "
               "\"leader\"; did you mean \"vote\"?"},
        Change{"/tensor_parallel/vote_ns", "-1", "/tensor_parallel/vote_ns: found -1"},
        Change{"/tensor_parallel/announce_ns", "[]",
               "/tensor_parallel/announce_ns: found an array of 0; expected an integer"}));

INSTANTIATE_TEST_SUITE_P(
    Network, CaseError,
    testing::Values(
        Change{"/network/mode", "\"lazy\"", "/network/mode: found \"lazy\"; expected one of"},
        Change{"/network/mode", "3", "/network/mode: found 3; expected one of \"eager\""},
        Change{"/network/bytes_per_second", "-1", "/network/bytes_per_second: found -1"},
        Change{"/network/latency", "[]",
               "/network: unknown key \"latency\"; did you mean \"latency_ns\"?"},
        Change{"/network/latency_ns", "{}", "/network/latency_ns: found an object; expected"},
        Change{"/network/latency_ns/0/kind", "\"I\"",
               "/network/latency_ns/0/kind: found \"I\"; expected one of \"F\", \"B\""},
        Change{"/network/latency_ns/0/from", "3",
               "/network/latency_ns/0/from: found 3; expected an integer from 0 to 2"},
        Change{"/network/latency_ns/0/to", "2",
               "/network/latency_ns/0: found an activation from stage 0 to stage 2; expected an "
               "edge of the stage graph"},
        Change{"/network/latency_ns/1/to", "0",
               "/network/latency_ns/1: found a gradient from stage 2 to stage 0; expected an edge"},
        Change{"/network/latency_ns/1/ns", "", "/network/latency_ns/1: the key \"ns\" is missing"},
        Change{"/network/latency_ns/1/ns", "[5]",
               "/network/latency_ns/1/ns: found an array of 1; expected an array of 2, one per "
               "microbatch"},
        Change{"/network/latency_ns/0/ns", "[[1, 2]]",
               "/network/latency_ns/0/ns: found an array of 1; expected an array of 2, one per "
               "lane"},
        Change{"/network/latency_ns/0/ns/1", "[1]",
               "/network/latency_ns/0/ns/1: found an array of 1; expected an array of 2, one per "
               "microbatch"},
        Change{"/network/latency_ns/1", R"({"kind": "F", "from": 0, "to": 1, "ns": [1, 1]})",
               "/network/latency_ns/1: this edge has an entry already"},
        Change{"/network/expected_latency_ns/0/ns", "[[1, 2], [1, 2]]",
               "/network/expected_latency_ns/0/ns/0: found an array of 2; expected an integer"},
        Change{"/network/message_bytes/I", "[]", "/network/message_bytes: unknown key \"I\""},
        Change{"/network/message_bytes/B/0/0", "-3", "/network/message_bytes/B/0/0: found -3"},
        Change{"/network/message_bytes/F/0/0", "9000000000000000000",
               "top level: durations, latencies and other times are too large"},
        Change{"/network/link_delay_ns/0/to", "0",
               "/network/link_delay_ns/0: a link joins two different ranks"},
        Change{"/network/link_delay_ns/0/to", "2",
               "/network/link_delay_ns/0/to: found 2; expected an integer from 0 to 1"},
        Change{"/network/link_delay_ns/1", R"({"from": 0, "to": 1, "ns": 1})",
               "/network/link_delay_ns/1: this link has an entry already"}));

INSTANTIATE_TEST_SUITE_P(
    MemoryAndPolicy, CaseError,
    testing::Values(
        Change{"/memory/weight_stash_bytes/1/1", "6",
               "/memory: weight_stash_bytes of stage 1, microbatch 1 is 6; at most its "
               "activation_bytes, 5"},
        Change{"/memory/activation_bytes", "",
               "/memory: weight_stash_bytes of stage 0, microbatch 0 is 2; at most its "
               "activation_bytes, 0"},
        Change{"/memory/budget_bytes", "[20]",
               "/memory/budget_bytes: found an array of 1; expected an array of 2, one per rank"},
        Change{"/memory/budget_bytes/0", "-1", "/memory/budget_bytes/0: found -1; expected"},
        Change{"/memory/budgets", "[]",
               "/memory: unknown key \"budgets\"; did you mean \"budget_bytes\"?"},
        Change{"/memory/activation_bytes/0/0", "9000000000000000000",
               "top level: activation_bytes or message_bytes are too large together"},
        Change{"/policy/window", "0",
               "/policy/window: found 0; expected an integer from 1 to 2147483647"},
        Change{"/policy/hint", "\"bf\"", "/policy/hint: found \"bf\"; expected an object"},
        Change{"/policy/hint", "{}",
               "/policy/hint: a hint has either a \"name\" or an \"order\"; found neither"},
        Change{"/policy/hint/name", "\"bf\"", "/policy/hint: a hint has either"},
        Change{"/policy/hint/order", "[[]]",
               "/policy/hint/order: found an array of 1; expected an array of 2, one per rank"},
        Change{"/policy/hint/order/0/1", "\"2f0\"",
               "/policy/hint/order/0/1: found \"2f0\"; expected a task such as \"3F0\""},
        Change{"/policy/hint/order/0/1", "\"99999999999F0\"",
               "/policy/hint/order/0/1: found \"99999999999F0\"; expected a task"},
        Change{"/policy/hint/called", "\"\"", "/policy/hint/called: found \"\"; expected a name"},
        Change{"/policy/arrange", "\"descending\"",
               "/policy/arrange: found \"descending\"; expected one of \"given\""},
        Change{"/policy/anticipation/reach_permille", "",
               "/policy/anticipation: the key \"reach_permille\" is missing"},
        Change{"/policy/anticipation/grace_permille", "-1",
               "/policy/anticipation/grace_permille: found -1; expected"},
        Change{"/policy/anticipate", "{}",
               "/policy: unknown key \"anticipate\"; did you mean \"anticipation\"?"}));

TEST(CaseErrors, TheTopMustBeAnObject) {
  for (const char* text : {"[]", "7", "null", "\"x\""}) {
    EXPECT_NE(error_of(json::parse(text)).find("expected an object"), std::string::npos) << text;
  }
}

// Many lanes share one short list in the file; what it stands for must stay small.
TEST(CaseErrors, LanesDoNotMultiplyBeyondBounds) {
  json file = good_case();
  constexpr int kStages = 8;
  const json row = std::vector<int>(80'000, 0);
  const json table = std::vector<json>(kStages, row);
  json stages = json::array();
  json latencies = json::array();
  for (int stage = 0; stage < kStages; ++stage) {
    json predecessors = json::array();
    for (int before = 0; before < stage; ++before) {
      predecessors.push_back(before);
      latencies.push_back({{"kind", "F"}, {"from", before}, {"to", stage}, {"ns", row}});
    }
    stages.push_back({{"rank", stage}, {"predecessors", predecessors}});
  }
  file["tensor_parallel"]["lanes"] = 64;
  file["pipeline"] = {{"ranks", kStages}, {"microbatches", 80'000}, {"stages", stages}};
  file["durations_ns"] = {{"F", table}, {"B", table}};
  for (const char* key : {"expected_ns", "input_ready_ns", "memory", "policy"}) file.erase(key);
  file["network"] = {{"latency_ns", latencies}};
  const std::string error = error_of(file);
  EXPECT_EQ(error.rfind("case.json: /network/latency_ns/26: lanes times", 0), 0U) << error;
}

TEST(CaseDefaults, HoldWhereTheFileIsSilent) {
  const Result<Case> read = read_text(R"({"schema": "rrfp.case/1",
    "pipeline": {"ranks": 3, "microbatches": 1, "stages": [{"rank": 0}, {"rank": 1}, {"rank": 2}]},
    "durations_ns": {"F": [[1], [2], [3]], "B": [[4], [5], [6]]}})");
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Program& program = read->program;
  EXPECT_EQ(program.spec().stages[0].predecessors, std::vector<int>());
  EXPECT_EQ(program.spec().stages[2].predecessors, std::vector<int>{1});
  EXPECT_EQ(program.backward_of(1), Backward::kFull);
  EXPECT_FALSE(program.split_backward());
  EXPECT_FALSE(program.ordered_accumulation());
  EXPECT_EQ(read->duration_ns[static_cast<std::size_t>(program.task_id(1, Slot::kBackward, 0))], 5);
  EXPECT_TRUE(read->expected_ns.empty());
  EXPECT_TRUE(read->input_ready_ns.empty());
  EXPECT_EQ(read->queue_depth, 1);
  EXPECT_EQ(read->tensor_parallel, TensorParallel());
  EXPECT_EQ(read->network, Network());
  EXPECT_EQ(read->memory, Memory());
  EXPECT_EQ(read->policy.hint.name, "bf");
  EXPECT_EQ(read->policy.window, kNoWindow);
  EXPECT_EQ(read->policy.arrangement, Arrangement::kGiven);
  EXPECT_FALSE(read->policy.anticipation.has_value());
}

TEST(CaseContent, StandsWhereTheSimulatorLooks) {
  const Result<Case> read = read_text(good_case().dump());
  ASSERT_TRUE(read.ok()) << read.error().message;
  const Program& program = read->program;
  const auto at = [&](Slot slot, int stage, int microbatch) {
    return read->duration_ns[static_cast<std::size_t>(program.task_id(stage, slot, microbatch))];
  };
  EXPECT_EQ(at(Slot::kForward, 2, 1), 6);
  EXPECT_EQ(at(Slot::kBackward, 1, 0), 3);
  // Stage 2 has no W; its row counts in the arrangement all the same.
  EXPECT_EQ(at(Slot::kWeight, 2, 0), 5);
  const auto latency = [&](Kind kind, int from, int to) {
    return read->network.latency_ns[static_cast<std::size_t>(program.find_edge(kind, from, to))];
  };
  EXPECT_EQ(latency(Kind::kForward, 0, 1), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(latency(Kind::kBackward, 2, 1), (std::vector<std::int64_t>{5, 6, 5, 6}));
  EXPECT_TRUE(latency(Kind::kForward, 1, 2).empty());
  EXPECT_EQ(read->memory.budget_bytes[0], 20);
  EXPECT_FALSE(read->memory.budget_bytes[1].has_value());
  EXPECT_EQ(read->policy.hint.order[0][1], (Task{2, Kind::kForward, 0}));
}

}  // namespace
}  // namespace rrfp
