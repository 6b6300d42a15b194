// Goal: `rrfp schedule` prints, checks and converts schedules, and a round
// trip through torch's file changes nothing.
#include "scheduler_core/schedule.h"
#include "tests/experiments/run_for_tests.h"

namespace rrfp {
namespace {

std::vector<std::string> zb_h2(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"schedule", "zb-h2", "--pp", "2", "--microbatches", "4"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// The example of torch's dialect in the published form.
const char* const kZbH2Csv =
    "0F0,0F1,0F2,0I0,0W0,0F3,0I1,0W1,0I2,0W2,0I3,0W3\n"
    "1F0,1I0,1F1,1I1,1F2,1I2,1W0,1F3,1I3,1W1,1W2,1W3\n";

TEST(ScheduleCommand, PrintsOrdersAndUnitCosts) {
  const Ran ran = run_rrfp(zb_h2({}));
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out,
            "zb-h2: 2 ranks, 2 stages, 4 microbatches\n"
            "\n"
            "rank 0: 0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3\n"
            "rank 1: 1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3\n"
            "\n"
            "As a fixed order at unit costs (F = I = W = 1, B = 2, messages take no time):\n"
            "rank  tasks  busy  idle  peak activations\n"
            "0        12    12     1                 3\n"
            "1        12    12     1                 3\n"
            "makespan 13\n");
}

TEST(ScheduleCommand, CsvGoesOutAndComesBack) {
  const std::string path = test_folder() + "/zb-h2.csv";
  EXPECT_EQ(run_rrfp(zb_h2({"--csv"})).out, kZbH2Csv);
  EXPECT_EQ(run_rrfp(zb_h2({"--csv", "--out", path})).status, 0);
  EXPECT_EQ(read_test_file(path), kZbH2Csv);
  EXPECT_EQ(run_rrfp({"schedule", "--from", path, "--csv"}).out, kZbH2Csv);
  // The zero-bubble papers' B, written and read.
  const std::string papers = test_folder() + "/papers.csv";
  ASSERT_EQ(run_rrfp(zb_h2({"--csv", "--b-means", "input", "--out", papers})).status, 0);
  EXPECT_NE(read_test_file(papers).find("0F2,0B0,0W0"), std::string::npos);
  const Ran back = run_rrfp({"schedule", "--from", papers, "--b-means", "input", "--hint"});
  EXPECT_EQ(back.status, 0) << back.err;
  EXPECT_NE(back.out.find("\"0F2\", \"0I0\", \"0W0\""), std::string::npos) << back.out;
}

TEST(ScheduleCommand, CheckNamesTheFault) {
  const std::string folder = test_folder();
  EXPECT_EQ(run_rrfp(zb_h2({"--check", "--budget", "3"})).out,
            "zb-h2: every task stands once, on its rank, and the order runs to its end within the "
            "budget\n");
  const Ran tight = run_rrfp(zb_h2({"--check", "--budget", "3,2"}));
  EXPECT_EQ(tight.status, 2);
  EXPECT_NE(tight.err.find("rank 1"), std::string::npos) << tight.err;
  EXPECT_EQ(tight.err.find("bytes"), std::string::npos) << "counted in activations: " << tight.err;
  const std::string path =
      write_test_file(folder + "/deadlock.csv", "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n");
  const Ran blocked = run_rrfp({"schedule", "--from", path, "--check"});
  EXPECT_EQ(blocked.status, 2);
  EXPECT_NE(blocked.err.find("1F1"), std::string::npos) << blocked.err;
  const Ran printed = run_rrfp({"schedule", "--from", path});
  EXPECT_EQ(printed.status, 0);
  EXPECT_NE(printed.out.find("As a fixed order it blocks: "), std::string::npos) << printed.out;
  const std::string twice = write_test_file(folder + "/twice.csv", "0F0,0F0,0B0\n");
  EXPECT_EQ(run_rrfp({"schedule", "--from", twice}).status, 2);
}

TEST(ScheduleCommand, EveryNamedScheduleIsMadeFromItsNameAlone) {
  for (const ScheduleEntry& entry : schedule_table()) {
    const Ran ran = run_rrfp(
        {"schedule", std::string(entry.name), "--pp", "4", "--microbatches", "8", "--csv"});
    EXPECT_EQ(ran.status, 0) << ran.err;
  }
}

}  // namespace
}  // namespace rrfp
