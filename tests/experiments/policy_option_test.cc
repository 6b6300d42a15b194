// Goal: every command that runs one policy of a scenario takes the baseline
// unless it is told another, and says on its first line which one that is.
#include "tests/experiments/run_for_tests.h"

namespace rrfp {
namespace {

// The baseline is not the first.
const char* const kScenario = R"({"schema": "rrfp.scenario/1", "name": "three",
  "pipeline": {"ranks": 2, "microbatches": 2},
  "durations": {"forward_us": 10, "backward_us": 20}, "baseline": "usual",
  "policies": [{"name": "other", "hint": "gpipe", "fixed": true},
               {"name": "usual", "hint": "1f1b", "fixed": true},
               {"name": "third", "hint": "bf"}]})";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::vector<std::vector<std::string>> commands(const std::string& path, const std::string& folder) {
  return {{"simulate", path},
          {"run", path},
          {"export", path, folder + "/out.jsonl"},
          {"train", path, "--text", path, "--steps", "1"},
          {"calibrate", path}};
}

TEST(PolicyOption, TheBaselineIsTheUsualOneOfEveryCommand) {
  const std::string folder = test_folder();
  const std::string path = write_test_file(folder + "/three.json", kScenario);
  for (std::vector<std::string> command : commands(path, folder)) {
    const Ran usual = run_rrfp(command);
    EXPECT_EQ(usual.status, 0) << usual.err;
    EXPECT_EQ(first_line(usual.out),
              "policy \"usual\", the baseline of 3; --policy NAME takes another")
        << command[0];
    command.insert(command.end(), {"--policy", "third"});
    const Ran chosen = run_rrfp(command);
    EXPECT_EQ(chosen.status, 0) << chosen.err;
    EXPECT_EQ(first_line(chosen.out), "policy \"third\", one of 3") << command[0];
    command.back() = "thir";
    EXPECT_TRUE(has(run_rrfp(command).err, "did you mean \"third\"?")) << command[0];
    EXPECT_TRUE(has(run_rrfp({command[0], "--help"}).out, "(default: its baseline)"));
  }
}

// What is said is what is run.
TEST(PolicyOption, TheOneThatIsSaidIsTheOneThatIsRun) {
  const std::string folder = test_folder();
  const std::string path = write_test_file(folder + "/three.json", kScenario);
  for (const auto& [policy, described] : {std::pair("usual", "policy: 1f1b as a fixed order"),
                                          std::pair("other", "policy: gpipe as a fixed order"),
                                          std::pair("third", "policy: bf as a hint")}) {
    for (const char* command : {"simulate", "run"}) {
      EXPECT_TRUE(has(run_rrfp({command, path, "--policy", policy}).out, described)) << command;
    }
  }
  for (const char* command : {"simulate", "run"}) {
    EXPECT_TRUE(has(run_rrfp({command, path}).out, "policy: 1f1b as a fixed order")) << command;
  }
  const Ran json = run_rrfp({"run", path, "--json"});
  EXPECT_TRUE(has(json.out, "\"policy\": \"usual\"")) << json.out;
  EXPECT_EQ(first_line(json.err),
            "policy \"usual\", the baseline of 3; --policy NAME takes another");
}

TEST(PolicyOption, ACaseHasOne) {
  const std::string folder = test_folder();
  for (std::vector<std::string> command : commands(own_case("three-chunks"), folder)) {
    if (command[0] == "export") continue;  // of scenarios alone
    command.insert(command.end(), {"--policy", "zb-h1"});
    const Ran ran = run_rrfp(command);
    EXPECT_EQ(ran.status, 2);
    EXPECT_TRUE(has(ran.err, "--policy chooses from a scenario; ")) << ran.err;
  }
}

TEST(PolicyOption, ValidateRunsAllAndSaysWhereNothingIsMoved) {
  const std::string path = write_test_file(test_folder() + "/three.json", kScenario);
  const Ran all = run_rrfp({"validate", path, "--iterations", "2"});
  for (const char* policy : {"\nother ", "\nusual ", "\nthird "}) {
    EXPECT_TRUE(has(all.out, policy)) << all.out << all.err;
  }
  EXPECT_TRUE(has(all.out, "note: messages have 0 bytes in " + path)) << all.out;
  const Ran two = run_rrfp({"validate", path, "--iterations", "2", "--policy", "third,other"});
  EXPECT_FALSE(has(two.out, "\nusual ")) << two.out;
  EXPECT_LT(two.out.find("\nthird "), two.out.find("\nother ")) << two.out;
}

}  // namespace
}  // namespace rrfp
