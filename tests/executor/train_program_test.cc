// Goal: `rrfp train` as a user starts it: over threads and under mpirun, with
// lanes and replicas, it trains the weights of a serial run to the last bit,
// and its decisions can be made again from their log.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

namespace rrfp {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

struct Ended {
  int status = 0;
  std::string text;  // standard output and error
};

Ended shell(const std::string& line) {
  Ended ended;
  FILE* pipe = popen((line + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen"};
  char part[4096];
  while (const std::size_t count = std::fread(part, 1, sizeof(part), pipe)) {
    ended.text.append(part, count);
  }
  const int status = pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

std::string folder() {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / ("rrfp_train_" + std::to_string(getpid()));
  std::filesystem::create_directories(path);
  return path.string();
}

// Two replicas of two ranks of two lanes.
std::string write_scenario() {
  std::string path = folder() + "/scenario.json";
  FILE* file = std::fopen(path.c_str(), "w");
  std::fputs(R"({"schema": "rrfp.scenario/1", "name": "s", "seed": 3, "iterations": 3,
  "pipeline": {"ranks": 2, "microbatches": 6, "split_backward": true, "ordered_accumulation": true},
  "durations": {"forward_us": 200, "input_gradient_us": 200, "weight_gradient_us": 200},
  "network": {"latency_us": 100},
  "tensor_parallel": {"lanes": 2}, "data_parallel": {"replicas": 2, "gradient_sync_us": 50},
  "policies": [{"name": "zb", "hint": "zb-h2", "anticipation": true, "arrange": "hill"}]})",
             file);
  std::fclose(file);
  return path;
}

std::string weights_of(const std::string& text) {
  const std::size_t at = text.find("weights 0x");
  return at == std::string::npos ? "" : text.substr(at, 26);
}

TEST(TrainProgram, OverThreadsAndMpiTheWeightsAreThoseOfASerialRun) {
  const std::string log = folder() + "/decisions.jsonl";
  const std::string train = std::string(RRFP_PROGRAM) + " train " + write_scenario() + " --text " +
                            RRFP_SOURCE_DIR
                            "/README.md --steps 3 --shortest 8 --longest 24 "
                            "--paced --check";
  const Ended threads = shell(train + " --adapt --decisions " + log);
  ASSERT_EQ(threads.status, 0) << threads.text;
  EXPECT_NE(threads.text.find("bit for bit"), std::string::npos) << threads.text;
  ASSERT_NE(weights_of(threads.text), "") << threads.text;
  const Ended replayed = shell(std::string(RRFP_PROGRAM) + " replay-log " + log);
  EXPECT_EQ(replayed.status, 0) << replayed.text;

  if (kSanitized) GTEST_SKIP() << "Open MPI is not built with this sanitizer";
  const std::filesystem::path program(RRFP_PROGRAM);
  if (!std::filesystem::exists(program.parent_path() / "librrfp_mpi.so") ||
      shell("mpirun --version").status != 0) {
    GTEST_SKIP() << "there is no MPI here";
  }
  const std::string root = geteuid() == 0 ? " --allow-run-as-root" : "";
  const Ended mpi =
      shell("mpirun --oversubscribe" + root + " -n 8 " + train + " --decisions " + log);
  EXPECT_EQ(mpi.status, 0) << mpi.text;
  EXPECT_NE(mpi.text.find("bit for bit"), std::string::npos) << mpi.text;
  EXPECT_EQ(weights_of(mpi.text), weights_of(threads.text));
  const Ended mpi_replayed = shell(std::string(RRFP_PROGRAM) + " replay-log " + log);
  EXPECT_EQ(mpi_replayed.status, 0) << mpi_replayed.text;
}

TEST(TrainProgram, WhatIsNoTextIsSaid) {
  const std::string train = std::string(RRFP_PROGRAM) + " train " + write_scenario() + " --text ";
  const Ended folder_given = shell(train + RRFP_SOURCE_DIR);
  EXPECT_EQ(folder_given.status, 2) << folder_given.text;
  EXPECT_NE(folder_given.text.find("is a directory"), std::string::npos) << folder_given.text;
  const Ended nothing = shell(train + "/nowhere/text");
  EXPECT_EQ(nothing.status, 2) << nothing.text;
  EXPECT_NE(nothing.text.find("/nowhere/text: cannot read: No such file"), std::string::npos)
      << nothing.text;
}

// The other lanes of a group may be waiting inside a task when one learns that
// the run is over.
TEST(TrainProgram, NotANumberWithLanesEndsTheRunAtOnce) {
  const std::string train = std::string(RRFP_PROGRAM) + " train " + write_scenario() +
                            " --text " RRFP_SOURCE_DIR "/README.md --patience-ms 60000";
  for (int tries = 0; tries < 4; ++tries) {
    const auto begin = std::chrono::steady_clock::now();
    const Ended broken = shell(train + " --learning-rate 1e300 --steps 3");
    EXPECT_EQ(broken.status, 1) << broken.text;
    EXPECT_NE(broken.text.find("the loss of microbatch"), std::string::npos) << broken.text;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  }
}

// The order of the case fits its budget, and so it does in the bytes of the model.
TEST(TrainProgram, TrainsWhatTheBudgetOfACaseLetsThrough) {
  const Ended trained =
      shell(std::string(RRFP_PROGRAM) + " train " RRFP_SOURCE_DIR
                                        "/tests/cases/windowed-leader.json --text " RRFP_SOURCE_DIR
                                        "/README.md --steps 2 --check");
  EXPECT_EQ(trained.status, 0) << trained.text;
}

TEST(TrainProgram, SaysWhatIsMissingOrNotAllowed) {
  const std::string train = std::string(RRFP_PROGRAM) + " train " + write_scenario();
  const Ended no_text = shell(train);
  EXPECT_EQ(no_text.status, 2);
  EXPECT_EQ(no_text.text, "rrfp train: --text FILE is missing: what to learn\n");
  const Ended heads = shell(train + " --text " RRFP_SOURCE_DIR "/README.md --heads 5");
  EXPECT_EQ(heads.status, 2);
  EXPECT_NE(heads.text.find("model: heads is 5; it must divide width, 32"), std::string::npos)
      << heads.text;
  const Ended broken =
      shell(train + " --text " RRFP_SOURCE_DIR "/README.md --learning-rate 1e300 --steps 3");
  EXPECT_EQ(broken.status, 1);
  EXPECT_NE(broken.text.find("step 1: the loss of microbatch"), std::string::npos) << broken.text;
}

}  // namespace
}  // namespace rrfp
