// Goal: a command that is given a file of another kind says what it found, what
// it takes and what the file is for; a file of its own kind that is wrong, or
// one that nobody knows, keeps its own error.
#include "experiments/file_kind.h"

#include "tests/experiments/run_for_tests.h"

namespace rrfp {
namespace {

std::string own_file(const std::string& name) {
  return std::string(RRFP_SOURCE_DIR) + "/experiments/" + name;
}

// One file of each kind that the program itself writes or reads, by its name.
class FileKinds : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = test_folder();
    const std::string scenario = own_file("noisy-1f1b.json");
    ASSERT_EQ(run_rrfp({"run", own_case("three-chunks"), "--trace", at("run.jsonl"), "--decisions",
                        at("decisions.jsonl")})
                  .status,
              0);
    ASSERT_EQ(run_rrfp({"sweep", scenario, "--iterations", "1", "--out", at("sweep")}).status, 0);
    ASSERT_EQ(
        run_rrfp({"simulate", own_case("three-chunks"), "--trace", at("timeline.json")}).status, 0);
    ASSERT_EQ(run_rrfp({"export", "--to", "kineto", scenario, at("profiles")}).status, 0);
    write_test_file(at("result.json"),
                    run_rrfp({"simulate", own_case("three-chunks"), "--json"}).out);
    write_test_file(at("calibration.json"), R"({"schema": "rrfp.calibration/1"})");
    write_test_file(at("stragglers.csv"), "dp_rank,stage,rank,step,optype\n");
  }

  std::string at(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(FileKinds, AreToldByTheirFirstBytes) {
  const std::vector<std::pair<std::string, FileKind>> files = {
      {own_case("three-chunks"), FileKind::kCase},
      {own_file("noisy-1f1b.json"), FileKind::kScenario},
      {own_file("zb-1.5b.json"), FileKind::kScenario},  // opens with a comment
      {own_file("noisy-1f1b.trace.jsonl.zst"), FileKind::kTrace},
      {at("run.jsonl"), FileKind::kTrace},
      {at("decisions.jsonl"), FileKind::kDecisions},
      {at("sweep/summary.json"), FileKind::kSweep},
      {at("sweep/runs.csv"), FileKind::kSweepRuns},
      {at("sweep/summary.csv"), FileKind::kSweepRuns},
      {at("sweep/scenario.json"), FileKind::kScenario},
      {at("result.json"), FileKind::kResult},
      {at("calibration.json"), FileKind::kCalibration},
      {at("timeline.json"), FileKind::kTimeline},
      {at("profiles/rank0.json"), FileKind::kProfile},
      {at("stragglers.csv"), FileKind::kStragglerCsv},
      {own_file("1f1b-p8-m32.csv"), FileKind::kScheduleCsv},
  };
  for (const auto& [path, kind] : files) EXPECT_EQ(kind_of_file(path), kind) << path;
  for (const char* text : {"", "{}", "[1]", "# text\n", R"({"schema": "rrfp.case/9"})", "1,2\n"}) {
    EXPECT_EQ(kind_of_text(text), std::nullopt) << text;
  }
  EXPECT_EQ(kind_of_file(folder_), std::nullopt);
  EXPECT_EQ(kind_of_file(at("absent")), std::nullopt);
}

TEST_F(FileKinds, EveryCommandNamesWhatItFoundAndWhatForItIs) {
  const std::string trace = own_file("noisy-1f1b.trace.jsonl.zst");
  const std::string scenario = own_file("noisy-1f1b.json");
  const std::string either =
      "; expected a case (rrfp.case/1) or a scenario (rrfp.scenario/1). What was found is for ";
  const std::string trace_found = ": found a recorded trace (rrfp.trace/1)";
  const std::string for_trace = "`rrfp info`, `replay`, `fit`";
  struct Given {
    std::vector<std::string> arguments;
    std::string message;
  };
  std::vector<Given> all = {
      {{"sweep", own_case("three-chunks")},
       ": found a case (rrfp.case/1); expected a scenario (rrfp.scenario/1). What was found is "
       "for `rrfp simulate`, `run`"},
      {{"sweep", at("sweep/summary.json")}, "the scenario*.json beside it is what was swept"},
      {{"export", at("timeline.json"), at("out")}, ": found a timeline for Perfetto; expected a "},
      {{"export", "--to", "perfetto", at("timeline.json"), at("out")},
       ": found a timeline for Perfetto; expected a recorded trace (rrfp.trace/1) or"},
      {{"export", trace, at("out")}, "`export --to perfetto`"},
      {{"info", scenario}, ": found a scenario (rrfp.scenario/1); expected a recorded trace"},
      {{"replay", at("profiles/rank0.json")}, "is for `rrfp import --from kineto`"},
      {{"fit", at("decisions.jsonl"), "--out", at("out")}, "is for `rrfp replay-log`"},
      {{"replay-log", at("run.jsonl")}, trace_found + "; expected a decision log"},
      {{"import", "--from", "kineto", trace, at("out")}, trace_found},
      {{"import", "--from", "megatron-log", own_file("1f1b-p8-m32.csv"), at("out")},
       ": found a schedule of torch.distributed.pipelining; expected a Megatron-LM log"},
      {{"schedule", "--from", trace}, trace_found},
      {{"simulate", scenario, "--calibration", at("result.json")},
       "; expected a calibration (rrfp.calibration/1)"},
  };
  for (const char* command : {"simulate", "run", "train", "calibrate", "validate"}) {
    all.push_back({{command, trace}, trace_found + either + for_trace});
    all.push_back({{command, at("calibration.json")},
                   ": found a calibration (rrfp.calibration/1)" + either + "--calibration of"});
  }
  for (const Given& given : all) {
    const Ran ran = run_rrfp(given.arguments);
    EXPECT_EQ(ran.status, 2) << given.message;
    EXPECT_TRUE(has(ran.err, given.message)) << ran.err << given.message;
  }
}

TEST_F(FileKinds, OfAFolderEveryCommandSaysWhatItHoldsAndWhatForThatIs) {
  const std::string profiles = at("profiles");
  const std::string is = ": is a directory; expected a file, ";
  const std::string holds =
      ". rank0.json in it is a PyTorch profiler file, for `rrfp import --from kineto`";
  const std::string either = "a case (rrfp.case/1) or a scenario (rrfp.scenario/1)";
  const std::string trace = "a recorded trace (rrfp.trace/1) or a straggler CSV";
  const std::vector<std::pair<std::vector<std::string>, std::string>> all = {
      {{"info", profiles}, trace},
      {{"replay", profiles}, trace},
      {{"fit", profiles}, trace},
      {{"export", "--to", "perfetto", profiles, at("out")}, trace},
      {{"simulate", profiles}, either},
      {{"run", profiles}, either},
      {{"train", profiles, "--text", own_case("three-chunks")}, either},
      {{"calibrate", profiles}, either},
      {{"validate", profiles}, either},
      {{"sweep", profiles}, "a scenario (rrfp.scenario/1)"},
      {{"export", profiles, at("out")}, "a scenario (rrfp.scenario/1)"},
      {{"replay-log", profiles}, "a decision log (rrfp.decisions/1)"},
      {{"import", "--from", "straggler-csv", profiles, at("out")}, "a straggler CSV"},
      {{"import", "--from", "torch-csv", profiles, at("out")},
       "a schedule of torch.distributed.pipelining"},
      {{"simulate", own_file("noisy-1f1b.json"), "--calibration", profiles},
       "a calibration (rrfp.calibration/1)"}};
  for (const auto& [arguments, takes] : all) {
    const Ran ran = run_rrfp(arguments);
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err, "rrfp " + arguments[0] + ": " + profiles + is + takes + holds + "\n");
  }
  const Ran swept = run_rrfp({"info", at("sweep")});
  EXPECT_TRUE(has(swept.err, ". runs.csv in it is a table of sweep results, for ")) << swept.err;
  const Ran meant = run_rrfp({"sweep", at("sweep")});
  EXPECT_TRUE(has(meant.err, "expected a file, a scenario (rrfp.scenario/1). ")) << meant.err;
  std::filesystem::create_directory(at("empty"));
  EXPECT_EQ(run_rrfp({"info", at("empty")}).err, "rrfp info: " + at("empty") + is + trace + "\n");
  // Imports of profiles take folders, and say themselves what is wrong with one.
  EXPECT_TRUE(has(run_rrfp({"import", "--from", "kineto", at("empty"), at("out")}).err,
                  at("empty") + ": holds no file"));
}

// What `rrfp init` writes begins with a comment, which is not what is wrong with it.
TEST_F(FileKinds, ACommentIsNotBlamedForTheSchema) {
  const std::string either = "expected \"rrfp.case/1\" or \"rrfp.scenario/1\"";
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"// made by hand\n{\"pipeline\": {}}", "the key \"schema\" is missing; " + either},
           {"// made by hand\n{\"schema\": \"rrfp.scenaro/1\"}",
            "/schema: found \"rrfp.scenaro/1\"; " + either},
           {"/* a list */ [1]", "found an array of 1; expected an object"},
           {"// a case\n{\"schema\": \"rrfp.case/1\"}", "a case takes no comments"}}) {
    const Ran ran = run_rrfp({"simulate", write_test_file(at("commented.json"), text)});
    EXPECT_EQ(ran.status, 2) << text;
    EXPECT_TRUE(has(ran.err, message)) << ran.err;
  }
  const std::string kinds = "expected a case (rrfp.case/1) or a scenario (rrfp.scenario/1)\n";
  for (const std::string text : {"\n# Read me\n", "\x89PNG\r\n\x1a\n"}) {
    const Ran ran = run_rrfp({"simulate", write_test_file(at("other"), text)});
    EXPECT_EQ(ran.status, 2) << text;
    EXPECT_TRUE(has(ran.err, " begins with neither \"{\" nor a comment; " + kinds)) << ran.err;
  }
  const Ran empty = run_rrfp({"sweep", write_test_file(at("other"), "\n")});
  EXPECT_TRUE(has(empty.err, ": is empty; expected a scenario (rrfp.scenario/1)\n")) << empty.err;
}

TEST_F(FileKinds, WhatIsWrongInAFileOfTheRightKindIsSaid) {
  const std::string text = R"({"schema": "rrfp.scenario/1", "pipelin": {}})";
  EXPECT_TRUE(has(run_rrfp({"sweep", write_test_file(at("s.json"), text)}).err, "pipelin"));
  EXPECT_TRUE(has(run_rrfp({"simulate", write_test_file(at("t.txt"), "hello")}).err, "line 1"));
  EXPECT_TRUE(has(
      run_rrfp({"simulate", own_file("noisy-1f1b.json"), "--calibration", at("calibration.json")})
          .err,
      "\"workers\""));
}

}  // namespace
}  // namespace rrfp
