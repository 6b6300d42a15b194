// Goal: wrong usage is one message that names what was found and what is
// allowed, with exit status 2; every command explains itself.
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>

#include "tests/experiments/run_for_tests.h"

namespace rrfp {
namespace {

struct WrongUsage {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(CommandLine, WrongUsageIsOneMessage) {
  const std::vector<WrongUsage> cases = {
      {{}, "rrfp: a command is missing; `rrfp --help` lists them"},
      {{"simulat"}, "rrfp: unknown command \"simulat\"; did you mean \"simulate\"? Allowed: "},
      {{"bogus"}, "rrfp: unknown command \"bogus\". Allowed: simulate, "},
      {{"simulate", "--qqqqq", "x"}, "unknown option \"--qqqqq\". Allowed: --"},
      {{"run", own_case("three-chunks"), "--device", "gpu"},
       "--device: unknown \"gpu\". Allowed: emulated, synthetic\n"},
      {{"run", own_case("three-chunks"), "--inject", "kill:9:9F1"},
       "--inject: found \"kill:9:9F1\"; there is no rank 9, ranks are 0 to "},
      {{"train", own_case("three-chunks"), "--text", "/dev/null"},
       "rrfp train: /dev/null: is empty; --text needs something to learn"},
      {{"--verison"}, "rrfp: unknown option \"--verison\"; allowed before a command: --help, "},
      {{"simulate"}, "rrfp simulate: FILE (a case or a scenario) is missing"},
      {{"simulate", "--jsn", "x"}, "unknown option \"--jsn\"; did you mean --json? Allowed: "},
      {{"simulate", "--js", "x"}, "unknown option \"--js\"; did you mean --json? Allowed: "},
      {{"simulate", "--operands", "x"}, "unknown option \"--operands\""},
      {{"simulate", "a", "b"}, "unexpected argument \"b\"; at most 1 is allowed"},
      {{"simulate", "--trace"}, "'--trace'"},
      {{"simulate", "a", "--max-file-mb", "0"},
       "--max-file-mb: found \"0\"; expected a whole number from 1 to 1048576"},
      {{"simulate", "a", "--max-file-mb", "3x"}, "--max-file-mb: found \"3x\""},
      {{"simulate", "--json", "--json", "a"}, "'--json'"},
      {{"train", own_case("frozen-encoder-lanes"), "--text", own_case("three-chunks")},
       "model: lanes is 3; it must divide heads, 4; --heads, --width, --mlp-width and --blocks "
       "say"},
      {{"schedule"}, "a schedule's name is missing; `rrfp schedule --list` lists them"},
      {{"schedule", "zb-h3", "--pp", "2", "--microbatches", "2"},
       "schedule: unknown \"zb-h3\"; did you mean \"zb-h1\"? Allowed: gpipe, 1f1b"},
      {{"schedule", "1f1b", "--pp", "2"}, "--microbatches is missing; expected a whole number"},
      {{"schedule", "1f1b", "--pp", "2", "--microbatches", "4", "--shape", "loop"},
       "--shape: unknown \"loop\"; did you mean \"looped\"? Allowed: linear, looped, v"},
      {{"schedule", "1f1b", "--pp", "2", "--microbatches", "4", "--chunks", "2"},
       "shape \"linear\" has 1 chunk per rank; found 2"},
      {{"schedule", "1f1b", "--pp", "2", "--microbatches", "4", "--budget", "2"},
       "--budget is only looked at with --check"},
      {{"schedule", "1f1b", "--pp", "2", "--microbatches", "4", "--check", "--budget", "2,2,2"},
       "--budget: found 3 numbers; expected a whole number from 1 to 1000000000, one for all "
       "ranks or 2"},
      {{"schedule", "1f1b", "--from", "x.csv"}, "give either a schedule's name or --from"},
      {{"schedule", "--from", "x.csv", "--pp", "2"}, "--pp describes a schedule by name"},
  };
  for (const WrongUsage& wrong : cases) {
    const Ran ran = run_rrfp(wrong.arguments);
    EXPECT_EQ(ran.status, 2) << wrong.message;
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(ran.err.starts_with("rrfp")) << ran.err;
    EXPECT_NE(ran.err.find(wrong.message), std::string::npos) << ran.err << wrong.message;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

// What a command reads is never lost to what it writes, by whatever path it is named.
TEST(CommandLine, NoCommandReplacesWhatItReadsOrItsOtherOutput) {
  const std::string folder = test_folder();
  const std::string text = read_test_file(own_case("three-chunks"));
  const std::string path = write_test_file(folder + "/case.json", text);
  const std::string other = write_test_file(folder + "/other", "words to learn");
  const std::string link = folder + "/link";
  std::filesystem::create_symlink(path, link);
  const std::string detour = folder + "/./case.json";
  const std::string out = folder + "/out";
  const std::string same_out = folder + "/./out";
  const std::vector<WrongUsage> cases = {
      {{"simulate", path, "--trace", path}, "--trace: " + path + " is what FILE reads"},
      {{"simulate", path, "--trace", detour}, " is what FILE reads, and would be replaced"},
      {{"simulate", path, "--calibration", other, "--trace", other}, "what --calibration reads"},
      {{"run", link, "--trace", path}, "--trace: "},
      {{"run", path, "--decisions", link}, "--decisions: "},
      {{"run", path, "--trace", out, "--decisions", same_out}, "what --trace writes as well"},
      {{"train", path, "--text", other, "--trace", other}, "what --text reads"},
      {{"train", path, "--text", other, "--decisions", path}, "what FILE reads"},
      {{"validate", path, "--out", path}, "what FILE reads"},
      {{"validate", path, "--calibration", other, "--out", other}, "what --calibration reads"},
      {{"calibrate", path, "--out", path}, "what FILE reads"},
      {{"export", path, path}, "OUT: " + path + " is what FILE reads"},
      {{"export", "--to", "perfetto", path, link}, "what FILE reads"},
      {{"schedule", "--from", other, "--csv", "--out", other}, "what --from reads"},
  };
  for (const WrongUsage& wrong : cases) {
    const Ran ran = run_rrfp(wrong.arguments);
    EXPECT_EQ(ran.status, 2) << wrong.arguments.front();
    EXPECT_EQ(ran.out, "");
    EXPECT_TRUE(has(ran.err, wrong.message)) << ran.err << wrong.message;
    EXPECT_EQ(read_test_file(path), text);
    EXPECT_EQ(read_test_file(other), "words to learn");
    EXPECT_TRUE(absent(out));
  }
  // A device may be given twice.
  EXPECT_EQ(run_rrfp({"run", path, "--trace", "/dev/null", "--decisions", "/dev/null"}).status, 0);
}

TEST(CommandLine, EveryCommandHelpsWithAnExample) {
  const Ran overview = run_rrfp({"--help"});
  EXPECT_EQ(overview.status, 0);
  for (const Command* command : command_table()) {
    const std::string name(command->name);
    EXPECT_NE(overview.out.find("\n  " + name + " "), std::string::npos) << name;
    const Ran help = run_rrfp({name, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_NE(help.out.find("\nexample:\n  rrfp " + name), std::string::npos) << help.out;
    for (const OptionRow& row : command->options) {
      EXPECT_NE(help.out.find("  --" + std::string(row.name)), std::string::npos) << row.name;
    }
  }
}

int status_of(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(CommandLine, ProgramEndsWithTheStatus) {
  const std::string program = RRFP_PROGRAM;
  const std::string quiet = " >/dev/null 2>/dev/null";
  EXPECT_EQ(status_of(program + " --help" + quiet), 0);
  EXPECT_EQ(status_of(program + quiet), 2);
  EXPECT_EQ(status_of(program + " simulate - <" + own_case("three-chunks") + quiet), 0);
  EXPECT_EQ(status_of(program + " simulate " + own_case("three-chunks") +
                      " --json >/dev/full 2>/dev/null"),
            2)
      << "what cannot be written is not success";
}

}  // namespace
}  // namespace rrfp
