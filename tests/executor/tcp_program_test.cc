// Goal: over TCP, `rrfp run`, `train` and `validate` do what they do over MPI:
// lanes and replicas, equal bits, decisions that can be made again, and faults
// that end every process with what it waited for.
#include <gtest/gtest.h>

#include "executor/clock.h"
#include "tests/executor/program_for_tests.h"

namespace rrfp {
namespace {

// `more`: of the pipeline, then of the scenario.
std::string scenario(int ranks, const std::string& more_pipeline = "",
                     const std::string& more = "") {
  return write_text("tcp.json", R"({"schema": "rrfp.scenario/1", "name": "s", "seed": 3,
  "iterations": 3, "pipeline": {"ranks": )" +
                                    std::to_string(ranks) +
                                    R"(, "microbatches": 8, "split_backward": true)" +
                                    more_pipeline + R"(},
  "durations": {"forward_us": 1000, "input_gradient_us": 1000, "weight_gradient_us": 1000},
  "network": {"latency_us": 100})" + more +
                                    R"(,
  "policies": [{"name": "zb", "hint": "zb-h2", "anticipation": true},
               {"name": "bfw", "hint": "bfw"}]})");
}

constexpr const char* kLanesAndReplicas =
    R"(, "tensor_parallel": {"lanes": 2}, "data_parallel": {"replicas": 2, "gradient_sync_us": 500})";

void expect_all(const EndedJob& job, int status) {
  for (const int ended : job.statuses) EXPECT_EQ(ended, status) << job.text;
}

TEST(ProgramOverTcp, RunsLanesAndReplicasAndItsLogIsReplayed) {
  const std::string log = path_for("decisions.jsonl");
  const EndedJob ran = over_tcp(8, {"run", scenario(2, "", kLanesAndReplicas), "--decisions", log});
  expect_all(ran, 0);
  EXPECT_TRUE(ran.has("on 8 processes")) << ran.text;
  const EndedProgram replayed = rrfp({"replay-log", log});
  EXPECT_EQ(replayed.status, 0) << replayed.text;
  EXPECT_TRUE(replayed.has("identical")) << replayed.text;
}

TEST(ProgramOverTcp, TrainsToTheBitsOfASerialRun) {
  const std::string input = scenario(2, R"(, "ordered_accumulation": true)", kLanesAndReplicas);
  const std::vector<std::string> train = {
      "train",     input, "--text", RRFP_SOURCE_DIR "/README.md", "--steps", "3", "--shortest", "8",
      "--longest", "24",  "--check"};
  const EndedJob ran = over_tcp(8, train);
  expect_all(ran, 0);
  EXPECT_TRUE(ran.has("bit for bit")) << ran.text;
}

// A calibration, and a run for each policy.
TEST(ProgramOverTcp, ManyRunsFollowOneAnotherInOneJob) {
  const EndedJob ran =
      over_tcp(4, {"validate", scenario(4), "--transport", "tcp", "--iterations", "3"});
  EXPECT_EQ(ran.statuses, (std::vector<int>{status_of_validation(ran.text), 0, 0, 0})) << ran.text;
  EXPECT_TRUE(ran.has("over tcp")) << ran.text;
  EXPECT_TRUE(ran.has("decisions were made again")) << ran.text;
}

TEST(ProgramOverTcp, KilledProcessEndsTheOthersWhichNameRankTaskAndChannel) {
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  const EndedJob ran = over_tcp(4, {"run", scenario(4), "--inject", "kill:2:2F3"});
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 12'000'000'000);
  EXPECT_EQ(ran.statuses, (std::vector<int>{1, 1, 128 + SIGKILL, 1})) << ran.text;
  EXPECT_TRUE(ran.has("process 2 is lost: ")) << ran.text;
  EXPECT_TRUE(ran.has("rank 1 waits to run 1I")) << ran.text;
  EXPECT_TRUE(ran.has("channel rank 2 -> rank 1")) << ran.text;
  EXPECT_TRUE(ran.has("rank 3 waits to run 3F3: for the activation on channel rank 2 -> rank 3"))
      << ran.text;
}

TEST(ProgramOverTcp, KilledFirstProcessEndsTheOthers) {
  const EndedJob ran = over_tcp(3, {"run", scenario(3), "--inject", "kill:0:0F4"});
  EXPECT_EQ(ran.statuses, (std::vector<int>{128 + SIGKILL, 1, 1})) << ran.text;
  EXPECT_TRUE(ran.has("process 0 is lost: ")) << ran.text;
}

// A lane may be waiting inside a task for one that has ended.
TEST(ProgramOverTcp, ABrokenLaneEndsTheOthersOfItsGroup) {
  const std::string input =
      scenario(2, R"(, "ordered_accumulation": true)", R"(, "tensor_parallel": {"lanes": 2})");
  const EndedJob ran = over_tcp(
      4, {"train", input, "--text", RRFP_SOURCE_DIR "/README.md", "--learning-rate", "1e300"});
  expect_all(ran, 1);
  EXPECT_TRUE(ran.has("the loss of microbatch")) << ran.text;
}

TEST(ProgramOverTcp, AMissingOrWrongEnvironmentIsSaid) {
  const std::string input = scenario(2);
  const auto with = [&](std::vector<std::string> variables) {
    variables.insert(variables.begin(), "env");
    variables.insert(variables.end(), {RRFP_PROGRAM, "run", input, "--transport", "tcp"});
    const EndedProgram ran = start(variables);
    EXPECT_EQ(ran.status, 2) << ran.text;
    return ran.text;
  };
  EXPECT_EQ(with({}),
            "rrfp run: --transport tcp: environment: RANK and WORLD_SIZE are missing: which "
            "process this is, of how many\n");
  EXPECT_EQ(with({"SLURM_PROCID=0", "SLURM_NTASKS=2"}),
            "rrfp run: --transport tcp: environment: MASTER_ADDR is missing: the host of process "
            "0\n");
  EXPECT_EQ(with({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=70000"}),
            "rrfp run: --transport tcp: environment: MASTER_PORT is 70000; expected 1 to 65535\n");
}

TEST(ProgramOverTcp, UsesTheNumbersOfAnotherLauncher) {
  const std::string input = scenario(1);
  const EndedProgram ran =
      start({"env", "SLURM_PROCID=0", "SLURM_NTASKS=1", "MASTER_ADDR=localhost",
             "MASTER_PORT=" + std::to_string(free_port()), RRFP_PROGRAM, "run", input,
             "--transport", "tcp"});
  EXPECT_EQ(ran.status, 0) << ran.text;
  EXPECT_TRUE(ran.has("on 1 processes")) << ran.text;
}

TEST(ProgramOverTcp, WrongNumberOfProcessesIsSaid) {
  const EndedJob ran = over_tcp(2, {"run", scenario(3)});
  expect_all(ran, 2);
  EXPECT_TRUE(
      ran.has("this run takes 3 processes (1 replicas x 3 ranks x 1 lanes), found 2: start "
              "it 3 times, with WORLD_SIZE=3"))
      << ran.text;
}

}  // namespace
}  // namespace rrfp
