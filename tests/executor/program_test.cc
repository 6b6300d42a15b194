// Goal: `rrfp run`, `replay-log`, `calibrate` and `validate` as a user starts
// them, over threads and under mpirun, with their faults: a killed process, a
// silent one, Ctrl-C. Needs mpirun and the MPI module for the second half.
#include <gtest/gtest.h>

#include <string>

#include "executor/clock.h"
#include "tests/executor/program_for_tests.h"
#include "tests/executor/validation_for_tests.h"
#include "traces/json_reader.h"
#include "traces/native_trace_reader.h"

namespace rrfp {
namespace {

std::string scenario(const std::string& extra, const std::string& policies, int ranks = 4,
                     int task_us = 2000) {
  const std::string us = std::to_string(task_us);
  return write_text("scenario.json",
                    R"({"schema": "rrfp.scenario/1", "name": "s", "seed": 3, "iterations": 3,
  "pipeline": {"ranks": )" +
                        std::to_string(ranks) + R"(, "microbatches": 8, "split_backward": true},
  "durations": {"forward_us": )" +
                        us + R"(, "input_gradient_us": )" + us + R"(, "weight_gradient_us": )" +
                        us + R"(}, "network": {"latency_us": 100})" + extra + R"(, "policies": [)" +
                        policies + "]}");
}

constexpr const char* kBfw = R"({"name": "bfw", "hint": "bfw"})";

// `least_iterations` or more; where the writer was killed, the last one may be
// torn, and is left out.
void expect_whole_trace(const std::string& path, int least_iterations, bool killed = false) {
  Result<NativeTraceReader> reader = NativeTraceReader::open(path);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  int iterations = 0;
  TraceRecord record;
  while (true) {
    const Result<bool> more = reader->next(&record);
    ASSERT_TRUE(more.ok()) << more.error().message;
    if (!*more) break;
    if (const TraceTask* task = std::get_if<TraceTask>(&record)) {
      iterations = std::max(iterations, task->iteration + 1);
    }
  }
  EXPECT_LE(reader->dropped().total(), killed ? 1 : 0);
  EXPECT_GE(iterations, least_iterations);
}

TEST(Program, RunsOnThreadsAndItsLogIsReplayed) {
  const std::string trace = path_for("trace.jsonl");
  const std::string log = path_for("decisions.jsonl");
  const EndedProgram ran = rrfp({"run", scenario("", kBfw), "--trace", trace, "--decisions", log});
  ASSERT_EQ(ran.status, 0) << ran.text;
  expect_whole_trace(trace, 3);
  const EndedProgram replayed = rrfp({"replay-log", log});
  EXPECT_EQ(replayed.status, 0) << replayed.text;
  EXPECT_TRUE(replayed.has("identical")) << replayed.text;
}

TEST(Program, BlockedRunHasStatusThree) {
  const std::string path = std::string(RRFP_SHARED_DIR) + "/cases/blocked-window.json";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no shared cases: " << path;
  const EndedProgram ran = rrfp({"run", path});
  EXPECT_EQ(ran.status, 3) << ran.text;
  EXPECT_TRUE(ran.has("blocked")) << ran.text;
}

TEST(Program, BlockedOnMemorySaysHowMuchThereIsAndWhatToDo) {
  std::string text = read_text_file(RRFP_SOURCE_DIR "/tests/cases/windowed-leader.json").value();
  const std::string budget = "\"budget_bytes\": [5, 4]";
  ASSERT_NE(text.find(budget), std::string::npos);
  text.replace(text.find(budget), budget.size(), "\"budget_bytes\": [4, 4]");
  const EndedProgram ran = rrfp({"run", write_text("blocked.json", text)});
  EXPECT_EQ(ran.status, 3) << ran.text;
  EXPECT_TRUE(ran.has(
      "rank 0 lane 0 waits for memory to run 0F3: it takes 1 bytes; of the "
      "rank's budget of 4 bytes 4 are in use and 0 are free for stage 0; raise "
      "the memory budget of rank 0, in the units that its file counts in, or give the policy "
      "a larger \"window\" than 3, or none"))
      << ran.text;
}

// Under a window it depends on who comes first whether memory is left for the next in order.
TEST(Program, AWindowMayBlockWhereMessagesComeInAnotherOrder) {
  const auto with_latency = [](const std::string& ns) {
    return write_text("window_" + ns + ".json", R"({"schema": "rrfp.case/1", "name": "w",
  "pipeline": {"ranks": 2, "microbatches": 2, "split_backward": false,
               "stages": [{"rank": 0}, {"rank": 1, "predecessors": [0]}]},
  "durations_ns": {"F": [[1000000, 1000000], [1000000, 1000000]],
                   "B": [[1000000, 1000000], [1000000, 1000000]]},
  "network": {"message_bytes": {"F": [[8, 8], [8, 8]], "B": [[8, 8], [8, 8]]},
              "latency_ns": [{"kind": "F", "from": 0, "to": 1, "ns": [)" +
                                                    ns + R"(, 0]}]},
  "memory": {"activation_bytes": [[1, 1], [1, 2]], "budget_bytes": [2, 2]},
  "policy": {"window": 2, "hint": {"order": [["0F0", "0F1", "0B0", "0B1"],
                                             ["1F0", "1F1", "1B0", "1B1"]]}}})");
  };
  for (const std::string command : {"simulate", "run"}) {
    EXPECT_EQ(rrfp({command, with_latency("0")}).status, 0);
    const EndedProgram blocked = rrfp({command, with_latency("20000000")});
    EXPECT_EQ(blocked.status, 3) << blocked.text;
    EXPECT_TRUE(blocked.has("rank 1")) << blocked.text;
    EXPECT_TRUE(blocked.has("waits for memory")) << blocked.text;
    EXPECT_TRUE(blocked.has("larger \"window\" than 2")) << blocked.text;
  }
}

TEST(Program, InterruptKeepsTheTrace) {
  const std::string trace = path_for("trace.jsonl");
  std::filesystem::remove(trace);
  const EndedProgram ran = rrfp(
      {"run", scenario("", kBfw), "--iterations", "300", "--trace", trace}, {SIGINT, trace, 300});
  EXPECT_EQ(ran.status, 130) << ran.text;
  expect_whole_trace(trace, 1);
}

TEST(Program, KilledProcessLeavesAWholeTrace) {
  const std::string trace = path_for("trace.jsonl");
  const EndedProgram first = rrfp({"run", scenario("", kBfw), "--trace", trace});
  ASSERT_EQ(first.status, 0) << first.text;
  const EndedProgram ran =
      rrfp({"run", scenario("", kBfw), "--trace", trace, "--inject", "kill:2:2F3"});
  EXPECT_EQ(ran.status, 128 + SIGKILL);
  expect_whole_trace(trace, 3);
}

TEST(Program, KilledAnywhereTheFilesCanBeReadUpToThere) {
  for (const char* name : {"killed.jsonl", "killed.jsonl.gz", "killed.jsonl.zst"}) {
    for (const int after_ms : {50, 173, 297}) {
      const std::string trace = path_for(name);
      const std::string log = path_for("killed.log");
      std::filesystem::remove(trace);
      std::filesystem::remove(log);
      const EndedProgram ran = rrfp({"run", scenario("", kBfw, 4, 50), "--iterations", "1000",
                                     "--trace", trace, "--decisions", log},
                                    {SIGKILL, log, after_ms});
      EXPECT_EQ(ran.status, 128 + SIGKILL) << ran.text;
      expect_whole_trace(trace, 1, true);
      const EndedProgram replayed = rrfp({"replay-log", log});
      EXPECT_EQ(replayed.status, 0) << replayed.text;
      EXPECT_TRUE(replayed.has("identical")) << replayed.text;
    }
  }
}

TEST(Program, SaysWhatIsWrongWithAFault) {
  for (const std::string fault : {"kill:1:2F3", "kill:9:2F3", "kill:one:2F3", "stall:1:1F3:5ms",
                                  "stall:1:1F3:99999999999999999"}) {
    const EndedProgram ran = rrfp({"run", scenario("", kBfw), "--inject", fault});
    EXPECT_EQ(ran.status, 2);
    EXPECT_TRUE(ran.has("--inject: found \"" + fault + "\"")) << ran.text;
    EXPECT_EQ(ran.has("rank 1 has no task 2F3"), fault == "kill:1:2F3") << ran.text;
    EXPECT_EQ(ran.has("there is no rank 9, ranks are 0 to 3"), fault == "kill:9:2F3") << ran.text;
  }
}

TEST(Program, CalibratesAndValidates) {
  const std::string file = path_for("calibration.json");
  const std::string input = scenario("", kBfw);
  const EndedProgram calibrated = rrfp({"calibrate", input, "--out", file});
  ASSERT_EQ(calibrated.status, 0) << calibrated.text;
  const EndedProgram ran = rrfp({"validate", input, "--iterations", "3", "--calibration", file,
                                 "--json", "--out", path_for("validation.json")});
  ASSERT_EQ(ran.status, status_of_validation(ran.text)) << ran.text;
  const Result<JsonDocument> json = validation_in(ran.text);
  ASSERT_TRUE(json.ok()) << json.error().message;
  ASSERT_NE(json->root.find("policies"), nullptr);
  EXPECT_TRUE(ran.text.ends_with("\n" + *read_text_file(path_for("validation.json")))) << ran.text;
}

TEST(Program, ValidatesThePoliciesThatAreAskedForAndSaysWhatItsFiguresAreWorth) {
  const std::string tiny = write_text("tiny.json", R"({"schema": "rrfp.scenario/1", "name": "tiny",
  "seed": 3, "iterations": 2, "pipeline": {"ranks": 2, "microbatches": 4},
  "durations": {"forward_us": 0.1, "input_gradient_us": 0.1, "weight_gradient_us": 0.1},
  "policies": [{"name": "a", "hint": "1f1b"}, {"name": "b", "hint": "bf"},
               {"name": "c", "hint": "gpipe"}]})");
  const EndedProgram ran = rrfp({"validate", tiny, "--iterations", "3", "--policy", "c,a"});
  EXPECT_TRUE(ran.has("\nc ") && ran.has("\na ") && !ran.has("\nb ")) << ran.text;
  EXPECT_TRUE(ran.has("prediction: void, tasks take ")) << ran.text;
  EXPECT_TRUE(ran.has("less than what the executor adds to each")) << ran.text;
  const EndedProgram unknown = rrfp({"validate", tiny, "--policy", "a,d"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_TRUE(unknown.has("--policy: unknown \"d\"")) << unknown.text;

  const std::string other = write_text("other.json", R"({
  "schema": "rrfp.calibration/1", "job": "another", "workers": 8, "task_extra_ns": 0,
  "message_extra_ns": 0, "timer_late_ns": {"p50": 0, "p99": 0}})");
  const EndedProgram foreign =
      rrfp({"validate", tiny, "--iterations", "3", "--policy", "a", "--calibration", other});
  EXPECT_TRUE(
      foreign.has("warning: the calibration is of another job, made of another and not "
                  "tiny, with 8 workers and not 2 workers"))
      << foreign.text;
}

// Before the first policy is run, or a calibration made.
TEST(Program, ValidatesNoneWhereOneOfThePoliciesCannotRun) {
  const std::string whole = write_text("whole.json", R"({"schema": "rrfp.scenario/1",
  "pipeline": {"ranks": 2, "microbatches": 4},
  "durations": {"forward_us": 100, "backward_us": 200},
  "policies": [{"name": "a", "hint": "1f1b"}, {"name": "b", "hint": "zb-h1"}]})");
  const EndedProgram refused = rrfp({"validate", whole});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(refused.has(whole + ": policy \"b\": schedule zb-h1 needs split backwards"))
      << refused.text;
  EXPECT_FALSE(refused.has("note: ")) << "that is what comes before the runs: " << refused.text;
}

// Said before the work and not after it, with nothing lost.
TEST(Program, OutputsThatCannotBeWrittenAreRefusedBeforeTheRun) {
  const std::string input = scenario("", kBfw);
  const std::string absent = path_for("absent/result.json");
  for (const auto& [command, option] : {std::pair("calibrate", "--out"),
                                        {"validate", "--out"},
                                        {"run", "--trace"},
                                        {"run", "--decisions"}}) {
    const EndedProgram ran = rrfp({command, input, option, absent});
    EXPECT_EQ(ran.status, 2) << ran.text;
    EXPECT_EQ(ran.text, "rrfp " + std::string(command) + ": " + absent +
                            ": cannot write: there is no folder " + path_for("absent") +
                            "; make it or give another " + option + "\n");
  }
  const EndedProgram folder = rrfp({"calibrate", input, "--out", path_for("")});
  EXPECT_EQ(folder.status, 2) << folder.text;
  EXPECT_TRUE(folder.has("is a directory")) << folder.text;
}

TEST(ProgramOverMpi, RunsLanesAndReplicasAndItsLogIsReplayed) {
  if (const std::string why = no_mpi(); !why.empty()) GTEST_SKIP() << why;
  const std::string trace = path_for("trace.jsonl");
  const std::string log = path_for("decisions.jsonl");
  const std::string input = scenario(
      R"(, "tensor_parallel": {"lanes": 2}, "data_parallel": {"replicas": 2, "gradient_sync_us": 500})",
      R"({"name": "zb", "hint": "zb-h2", "anticipation": true})", 2);
  const EndedProgram ran = mpirun(8, {"run", input, "--trace", trace, "--decisions", log});
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_TRUE(ran.has("on 8 processes")) << ran.text;
  expect_whole_trace(trace, 3);
  const EndedProgram replayed = rrfp({"replay-log", log});
  EXPECT_EQ(replayed.status, 0) << replayed.text;
}

TEST(ProgramOverMpi, SixteenThirtyTwoAndSixtyFourRanksComplete) {
  if (const std::string why = no_mpi(); !why.empty()) GTEST_SKIP() << why;
  for (const int ranks : {16, 32, 64}) {
    const std::string log = path_for("many.log");
    const EndedProgram ran = mpirun(ranks, {"run", scenario("", kBfw, ranks), "--iterations", "1",
                                            "--decisions", log, "--patience-ms", "60000"});
    ASSERT_EQ(ran.status, 0) << ran.text;
    EXPECT_TRUE(ran.has("on " + std::to_string(ranks) + " processes")) << ran.text;
    const EndedProgram replayed = rrfp({"replay-log", log});
    EXPECT_EQ(replayed.status, 0) << replayed.text;
  }
}

TEST(ProgramOverMpi, KilledProcessEndsTheJobAndSurvivorsSayWhatTheyWaitedFor) {
  if (const std::string why = no_mpi(); !why.empty()) GTEST_SKIP() << why;
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  const EndedProgram ran = mpirun(4, {"run", scenario("", kBfw), "--inject", "kill:2:2F3"});
  EXPECT_NE(ran.status, 0);
  EXPECT_TRUE(ran.has("rank 1 waits to run 1I")) << ran.text;
  EXPECT_TRUE(ran.has("channel rank 2 -> rank 1")) << ran.text;
  EXPECT_TRUE(ran.has("channel rank 2 -> rank 3")) << ran.text;
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 15'000'000'000);
}

TEST(ProgramOverMpi, SilentProcessIsNamedAndGone) {
  if (const std::string why = no_mpi(); !why.empty()) GTEST_SKIP() << why;
  const EndedProgram ran =
      mpirun(4, {"run", scenario("", kBfw), "--inject", "silent:2:2F3", "--patience-ms", "500"});
  EXPECT_NE(ran.status, 0);
  EXPECT_TRUE(ran.has("rank 2 has not answered")) << ran.text;
  EXPECT_TRUE(ran.has("channel rank 2 -> rank 1")) << ran.text;
}

TEST(ProgramOverMpi, WrongNumberOfProcessesIsSaid) {
  if (const std::string why = no_mpi(); !why.empty()) GTEST_SKIP() << why;
  const EndedProgram ran = mpirun(2, {"run", scenario("", kBfw)});
  EXPECT_EQ(ran.status, 2) << ran.text;
  EXPECT_EQ(ran.count("this run takes 4 processes"), 1) << ran.text;
}

TEST(ProgramOverMpi, WrongUsageIsSaidOnce) {
  if (const std::string why = no_mpi(); !why.empty()) GTEST_SKIP() << why;
  const EndedProgram absent = mpirun(3, {"run", path_for("absent.json")});
  EXPECT_EQ(absent.status, 2) << absent.text;
  EXPECT_EQ(absent.count("absent.json: cannot read"), 1) << absent.text;
  const EndedProgram help = mpirun(3, {"train", "--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_EQ(help.count("usage: rrfp train"), 1) << help.text;
}

}  // namespace
}  // namespace rrfp
