// Goal: a process that is killed, or that fails, ends its job wherever the job
// is by then: while it meets, connects, warms up, measures or runs. Each other
// process says so within a moment, in one sentence that names the process and
// what was under way, and its status is not 0.
#include <gtest/gtest.h>

#include <cstdlib>

#include "executor/clock.h"
#include "tests/executor/program_for_tests.h"

namespace rrfp {
namespace {

// Most of it is for a busy machine to start the processes and connect them; the other processes
// used to take a minute and more.
constexpr std::int64_t kMostNs = 20'000'000'000;

// A fault of process 2 of 4, see cuda_double_fault.h, and what of it the others say.
struct Stage {
  const char* fault;
  const char* under_way;
  const char* or_under_way = nullptr;
};

class CudaNcclFaults : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path folder = std::filesystem::path(RRFP_PROGRAM).parent_path();
    setenv("RRFP_CUDA_MODULE", (folder / "librrfp_cuda_double.so").c_str(), 1);
    setenv("RRFP_DOUBLE_DEVICES", "8", 1);
    begin_ns_ = MonotonicClock::read_ns();
  }
  void TearDown() override {
    for (const char* name : {"RRFP_CUDA_MODULE", "RRFP_DOUBLE_DEVICES", "RRFP_DOUBLE_FAULT"}) {
      unsetenv(name);
    }
  }

  static std::string scenario(int ranks, const std::string& more = "") {
    return write_text("faults.json",
                      R"({"schema": "rrfp.scenario/1", "name": "s", "seed": 3, "iterations": 3,
  "pipeline": {"ranks": )" +
                          std::to_string(ranks) +
                          R"(, "microbatches": 8, "ordered_accumulation": true},
  "durations": {"forward_us": 1000, "backward_us": 2000},
  "network": {"latency_us": 100, "activation_bytes": 100003, "gradient_bytes": 50001})" +
                          more + R"(,
  "policies": [{"name": "1f1b", "hint": "1f1b", "fixed": true}]})");
  }
  static std::vector<std::string> train(const std::string& file) {
    return {"train",      file,   "--device",  "cuda",
            "--policy",   "1f1b", "--text",    std::string(RRFP_SOURCE_DIR) + "/README.md",
            "--steps",    "2",    "--longest", "16",
            "--shortest", "8"};
  }
  static std::vector<std::string> calibrate(const std::string& file) {
    return {"calibrate", file, "--device", "synthetic"};
  }
  EndedJob with_fault(const std::string& fault, const std::vector<std::string>& arguments) {
    setenv("RRFP_DOUBLE_FAULT", fault.c_str(), 1);
    begin_ns_ = MonotonicClock::read_ns();
    return over_tcp(4, arguments);
  }
  // Process 0 of 2; the other one stops at its first send. `then`: what the shell does with
  // process 0, and to set `status`.
  EndedProgram beside_a_stopped_one(const std::string& options, const std::string& then) {
    setenv("RRFP_DOUBLE_FAULT", "1,ncclSend,1,stop", 1);
    std::string process =
        "env WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=" + std::to_string(free_port()) +
        " RANK=$rank LOCAL_RANK=$rank " RRFP_PROGRAM;
    for (const std::string& argument : train(scenario(2))) process += " " + argument;
    process += " --transport tcp " + options;
    begin_ns_ = MonotonicClock::read_ns();
    return start({"bash", "-c",
                  "rank=1; " + process + " > /dev/null 2>&1 & stopped=$!; rank=0; " + process +
                      then + "; kill -9 $stopped; exit $status"});
  }
  // Whether one line tells of an error, the last. Process 0 says before what it runs.
  static bool is_one_sentence(const std::string& text) {
    const std::string lines = "\n" + text;
    const std::size_t first = lines.find("\nrrfp ");
    return first != std::string::npos && lines.find('\n', first + 1) == lines.size() - 1;
  }
  void expect_all_name_the_killed_one(const EndedJob& ran, const Stage& stage) const {
    EXPECT_LT(MonotonicClock::read_ns() - begin_ns_, kMostNs) << stage.fault;
    EXPECT_EQ(ran.statuses[2], 128 + SIGKILL) << stage.fault << ran.text;
    for (const std::size_t process : {0U, 1U, 3U}) {
      const std::string& text = ran.texts[process];
      EXPECT_EQ(ran.statuses[process], 2) << stage.fault << ran.text;
      EXPECT_TRUE(is_one_sentence(text)) << stage.fault << text;
      EXPECT_NE(text.find("process 2 is lost: "), std::string::npos) << stage.fault << text;
      const bool said =
          text.find(stage.under_way) != std::string::npos ||
          (stage.or_under_way != nullptr && text.find(stage.or_under_way) != std::string::npos);
      EXPECT_TRUE(said) << stage.fault << text;
    }
  }
  std::int64_t begin_ns() const { return begin_ns_; }
  void expect_all_say(const EndedJob& ran, const std::string& what) const {
    EXPECT_LT(MonotonicClock::read_ns() - begin_ns_, kMostNs);
    EXPECT_EQ(ran.statuses, std::vector<int>(4, 2)) << ran.text;
    for (const std::string& text : ran.texts) {
      EXPECT_TRUE(is_one_sentence(text)) << text;
      EXPECT_NE(text.find("process 2: " + what), std::string::npos) << text;
    }
  }

 private:
  std::int64_t begin_ns_ = 0;
};

// Who waits for the connection of a channel names that, who is done waits for all.
constexpr const char* kOne = " cannot be connected: ";
constexpr const char* kAll = "connecting NCCL: ";
constexpr Stage kStages[] = {
    {"2,cudaSetDevice,1,kill", "all processes were asked whether they can go on"},
    {"2,ncclGetUniqueId,1,kill", "meeting to connect NCCL"},
    {"2,ncclCommInitRankConfig,1,kill", kOne, kAll},
    {"2,ncclCommInitRankConfig,3,kill", kOne, kAll},
    {"2,ncclRecv,1,kill", kOne, kAll},
    {"2,ncclSend,2,kill", kOne, kAll},
};

TEST_F(CudaNcclFaults, OneKilledBeforeItTrains) {
  const std::string file = scenario(4);
  for (const Stage& stage : kStages) {
    expect_all_name_the_killed_one(with_fault(stage.fault, train(file)), stage);
  }
}

TEST_F(CudaNcclFaults, OneKilledBeforeItIsCalibrated) {
  const std::string file = scenario(4);
  for (const Stage& stage : kStages) {
    expect_all_name_the_killed_one(with_fault(stage.fault, calibrate(file)), stage);
  }
}

// The sums of lanes are warmed up behind the channels; process 3 is the other lane of 2's rank.
TEST_F(CudaNcclFaults, OneKilledWhileLanesWarmUp) {
  const std::string file = scenario(2, R"(, "tensor_parallel": {"lanes": 2})");
  for (const char* fault : {"2,ncclAllGather,1,kill", "2,ncclAllGather,3,kill"}) {
    const EndedJob ran = with_fault(fault, train(file));
    expect_all_name_the_killed_one(ran, {fault, kOne, kAll});
    EXPECT_NE(ran.texts[3].find("the lanes of rank 1 cannot be connected: "), std::string::npos)
        << ran.text;
  }
}

// The first 2 of each are to connect; then come 18 messages of each of two sizes a channel.
TEST_F(CudaNcclFaults, OneKilledWhileChannelsAreMeasured) {
  const std::string file = scenario(4);
  for (const char* fault : {"2,ncclRecv,3,kill", "2,ncclSend,12,kill", "2,ncclSend,30,kill"}) {
    expect_all_name_the_killed_one(with_fault(fault, calibrate(file)), {fault, "measuring"});
  }
}

TEST_F(CudaNcclFaults, OneKilledInTheRun) {
  const std::string file = scenario(4);
  for (const auto& [fault, arguments] :
       {std::pair("2,ncclSend,4,kill", train(file)), {"2,ncclSend,80,kill", calibrate(file)}}) {
    const EndedJob ran = with_fault(fault, arguments);
    EXPECT_LT(MonotonicClock::read_ns() - begin_ns(), kMostNs) << fault;
    EXPECT_EQ(ran.statuses, (std::vector<int>{1, 1, 128 + SIGKILL, 1})) << ran.text;
    for (const std::size_t process : {0U, 1U, 3U}) {
      EXPECT_NE(ran.texts[process].find("process 2 is lost: "), std::string::npos) << ran.text;
      EXPECT_NE(ran.texts[process].find("\n  rank "), std::string::npos) << ran.text;
    }
  }
}

// One that is stopped keeps its connections; nothing but time tells of it. There is one wait for
// it, not one for every exchange in which it would take part.
TEST_F(CudaNcclFaults, OneThatIsStoppedIsWaitedForOnceAndNamed) {
  const EndedProgram ran = beside_a_stopped_one("--agree-ms 7000", "; status=$?");
  EXPECT_EQ(ran.status, 2) << ran.text;
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns(), kMostNs);
  EXPECT_EQ(ran.count("waits for process 1"), 0) << ran.text;
  EXPECT_EQ(ran.count("connecting NCCL: lane 0 waited in vain for process 1 of its group, "), 1)
      << ran.text;
  EXPECT_EQ(ran.count("an --agree-ms above 7000 waits longer"), 1) << ran.text;
}

TEST_F(CudaNcclFaults, APatienceAboveItsDefaultShortensNoWaitOfAll) {
  const std::string told = path_for("told.txt");
  const EndedProgram ran = beside_a_stopped_one(
      "--patience-ms 20000",
      " > " + told + " 2>&1 & first=$!; for look in {1..200}; do grep -q 'given up' " + told +
          " && break; sleep .1; done; kill -9 $first; status=0; cat " + told);
  EXPECT_EQ(ran.count("; given up after 300 s"), 1) << ran.text;
}

// The check by itself may take long, and communicators end together: process 0 must not keep its
// own meanwhile.
TEST_F(CudaNcclFaults, TheSerialCheckComesAfterTheCommunicators) {
  std::vector<std::string> arguments = train(scenario(4));
  arguments.push_back("--check");
  const EndedJob whole = with_fault("0,ncclCommFinalize,1000,kill", arguments);
  EXPECT_EQ(whole.statuses, std::vector<int>(4, 0)) << whole.text;
  EXPECT_TRUE(whole.has("those of a serial run")) << whole.text;
  const EndedJob ran = with_fault("0,ncclCommFinalize,1,kill", arguments);
  EXPECT_EQ(ran.statuses[0], 128 + SIGKILL) << ran.text;
  EXPECT_FALSE(ran.has("those of a serial run")) << ran.text;
}

TEST_F(CudaNcclFaults, OneThatFailsIsHeardOfAtOnce) {
  const std::string file = scenario(4);
  expect_all_say(with_fault("2,cudaSetDevice,2,fail", train(file)), "cudaSetDevice: ");
  expect_all_say(with_fault("2,ncclCommInitRankConfig,2,fail", train(file)),
                 "channel rank 3 -> rank 2 cannot be connected: ncclCommInitRankConfig: ");
  expect_all_say(with_fault("2,ncclSend,1,fail", calibrate(file)),
                 "channel rank 2 -> rank 3 cannot be connected: ncclSend: ");
  expect_all_say(with_fault("2,ncclSend,12,fail", calibrate(file)),
                 "channel rank 2 -> rank 3: the measuring with 4096 bytes: ncclSend: ");
}

// Over MPI as well, where nothing but the end of all tells of a killed one.
TEST_F(CudaNcclFaults, OneThatFailsIsHeardOfAtOnceOverMpi) {
  if (const std::string why = no_mpi(); !why.empty()) GTEST_SKIP() << why;
  setenv("RRFP_DOUBLE_FAULT", "1,ncclSend,1,fail", 1);
  const EndedProgram failed = mpirun(2, train(scenario(2)));
  EXPECT_EQ(failed.status, 2) << failed.text;
  EXPECT_EQ(failed.count("process 1: channel rank 1 -> rank 0 cannot be connected: ncclSend: "), 1)
      << failed.text;
  setenv("RRFP_DOUBLE_FAULT", "1,ncclSend,1,kill", 1);
  const EndedProgram killed = mpirun(2, train(scenario(2)));
  EXPECT_NE(killed.status, 0) << killed.text;
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns(), kMostNs);
}

}  // namespace
}  // namespace rrfp
