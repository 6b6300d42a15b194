// Goal: a command that runs one scenario says which point of its grid that is,
// and --point takes the one that `rrfp sweep` shows under that number.
#include "tests/experiments/run_for_tests.h"
#include "traces/json_reader.h"

namespace rrfp {
namespace {

const char* const kScenario = R"({"schema": "rrfp.scenario/1", "name": "gridded",
  "pipeline": {"ranks": 2, "microbatches": 2},
  "durations": {"forward_us": 10, "backward_us": 20},
  "policies": [{"name": "1f1b", "hint": "1f1b", "fixed": true}],
  "grid": {"/network/latency_us": [1, 7, 30], "/durations/forward_us": [10, 50]}, "network": {}})";

std::int64_t makespan_of(const Ran& ran) {
  const Result<JsonDocument> result = parse_json(ran.out, "the result");
  return result.ok() ? *result->root.find("makespan_ns")->integer() : -1;
}

TEST(ScenarioPoint, IsTheOneThatASweepShowsUnderThatNumber) {
  const std::string folder = test_folder();
  const std::string path = write_test_file(folder + "/grid.json", kScenario);
  const std::string out = folder + "/sweep";
  const Ran swept = run_rrfp({"sweep", path, "--out", out});
  ASSERT_EQ(swept.status, 0) << swept.err;
  std::vector<std::int64_t> makespans;
  for (int point = 0; point < 6; ++point) {
    const std::string number = std::to_string(point);
    const Ran ran = run_rrfp({"simulate", path, "--point", number, "--json"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    const Ran resolved = run_rrfp({"simulate", out + "/scenario-" + number + ".json", "--json"});
    EXPECT_EQ(makespan_of(ran), makespan_of(resolved)) << point;
    makespans.push_back(makespan_of(ran));
    // The line is the head of the sweep's table.
    const std::string head = "point " + number + ": ";
    const std::size_t at = swept.out.find("gridded, " + head);
    ASSERT_NE(at, std::string::npos) << swept.out;
    const std::string values = swept.out.substr(
        at + 9 + head.size(), swept.out.find(", 1 of 1", at) - at - 9 - head.size());
    EXPECT_TRUE(has(ran.err, "point " + number + " of 6: " + values + "\n")) << ran.err;
  }
  std::sort(makespans.begin(), makespans.end());
  EXPECT_EQ(std::unique(makespans.begin(), makespans.end()), makespans.end());
}

TEST(ScenarioPoint, TheFilesOwnValuesAreSaidToBeThose) {
  const std::string folder = test_folder();
  const std::string path = write_test_file(folder + "/grid.json", kScenario);
  const std::string note =
      "note: the file's own values, not those of its grid, which has 6 points, 0 to 5: --point N "
      "takes one\n";
  const std::vector<std::vector<std::string>> commands = {
      {"simulate", path},
      {"run", path},
      {"export", path, folder + "/out.jsonl"},
      {"train", path, "--text", path, "--steps", "1"},
      {"calibrate", path},
      {"validate", path, "--iterations", "2"}};
  const std::string few = "too few iterations";  // of validate, on a busy machine
  for (std::vector<std::string> command : commands) {
    const Ran base = run_rrfp(command);
    EXPECT_TRUE(base.status == 0 || has(base.out, few)) << base.err;
    EXPECT_TRUE(has(base.out, note)) << command[0] << ": " << base.out;
    command.insert(command.end(), {"--point", "5"});
    const Ran last = run_rrfp(command);
    EXPECT_TRUE(last.status == 0 || has(last.out, few)) << last.err;
    EXPECT_TRUE(has(last.out, "point 5 of 6: /network/latency_us = 30, /durations/forward_us = 50"))
        << command[0] << ": " << last.out;
    EXPECT_FALSE(has(last.out, note)) << command[0];
  }
}

TEST(ScenarioPoint, WrongOnesAreToldHowManyThereAre) {
  const std::string folder = test_folder();
  const std::string path = write_test_file(folder + "/grid.json", kScenario);
  for (const char* command : {"simulate", "run"}) {
    const Ran ran = run_rrfp({command, path, "--point", "6"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_TRUE(has(ran.err, "--point: found 6; the grid of " + path + " has 6 points, 0 to 5"))
        << ran.err;
    EXPECT_TRUE(has(run_rrfp({command, own_case("three-chunks"), "--point", "0"}).err,
                    "--point chooses from a scenario; "));
  }
  const std::string plain = std::string(RRFP_SOURCE_DIR) + "/experiments/noisy-1f1b.json";
  EXPECT_EQ(run_rrfp({"simulate", plain, "--point", "0"}).status, 0) << "a sweep's only point";
  EXPECT_TRUE(has(run_rrfp({"simulate", plain, "--point", "1"}).err, "has 1 point, 0"));
  EXPECT_TRUE(
      has(run_rrfp({"export", "--to", "perfetto", plain, folder + "/o", "--point", "0"}).err,
          "--point chooses from a scenario; --to perfetto takes a trace"));
}

}  // namespace
}  // namespace rrfp
