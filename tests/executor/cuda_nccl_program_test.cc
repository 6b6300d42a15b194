// Goal: several processes, each with a GPU of its own (the double's), started as
// a user starts them: they train to the bits that one process trains to, for
// every policy; their decisions can be made again and the model explains their
// runs; a process that is killed ends the others, who name what they waited for.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/executor/program_for_tests.h"
#include "tests/executor/validation_for_tests.h"
#include "traces/json_reader.h"

namespace rrfp {
namespace {

class CudaNcclProgram : public testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path folder = std::filesystem::path(RRFP_PROGRAM).parent_path();
    setenv("RRFP_CUDA_MODULE", (folder / "librrfp_cuda_double.so").c_str(), 1);
    setenv("RRFP_DOUBLE_DEVICES", "8", 1);
  }
  void TearDown() override {
    unsetenv("RRFP_CUDA_MODULE");
    unsetenv("RRFP_DOUBLE_DEVICES");
  }

  // Messages that wait for their receiver, of an odd number of bytes.
  static std::string scenario(int ranks, const std::string& more = "") {
    return write_text("nccl.json",
                      R"({"schema": "rrfp.scenario/1", "name": "s", "seed": 3, "iterations": 3,
  "pipeline": {"ranks": )" +
                          std::to_string(ranks) +
                          R"(, "microbatches": 8, "split_backward": true,
               "ordered_accumulation": true},
  "durations": {"forward_us": 1000, "input_gradient_us": 1000, "weight_gradient_us": 1000},
  "network": {"latency_us": 100, "activation_bytes": 100003, "gradient_bytes": 50001},
  "variability": [{"model": "lognormal", "on": "compute", "cv": 0.5}])" +
                          more + R"(,
  "policies": [{"name": "1f1b", "hint": "1f1b", "fixed": true}, {"name": "bf", "hint": "bf"},
               {"name": "zb-h2", "hint": "zb-h2"},
               {"name": "bfw", "hint": "bfw", "anticipation": true}]})");
  }
  static std::vector<std::string> train(const std::string& file, const std::string& policy) {
    return {"train",      file,   "--device",  "cuda",
            "--policy",   policy, "--text",    std::string(RRFP_SOURCE_DIR) + "/README.md",
            "--steps",    "2",    "--longest", "16",
            "--shortest", "8",    "--paced",   "--patience-ms",
            "30000"};
  }
  static std::string weights_of(const std::string& text) {
    const std::size_t at = text.find("weights 0x");
    return at == std::string::npos ? "" : text.substr(at, 26);
  }
};

TEST_F(CudaNcclProgram, EightProcessesTrainToTheBitsOfOneForEveryPolicy) {
  const std::string file = scenario(4, R"(, "tensor_parallel": {"lanes": 2})");
  const EndedProgram alone = rrfp(train(file, "1f1b"));
  ASSERT_EQ(alone.status, 0) << alone.text;
  ASSERT_NE(weights_of(alone.text), "") << alone.text;
  for (const char* policy : {"1f1b", "bf", "zb-h2", "bfw"}) {
    const EndedJob ran = over_tcp(8, train(file, policy));
    ASSERT_EQ(ran.statuses, std::vector<int>(8, 0)) << ran.text;
    EXPECT_EQ(weights_of(ran.text), weights_of(alone.text)) << policy;
    EXPECT_TRUE(ran.has("device: 1 partition of 132 SMs (plain streams), NCCL 2.")) << ran.text;
  }
}

// A first pass of each length, before the run, takes longer than the patience.
TEST_F(CudaNcclProgram, LengthsThatVaryDoNotHoldUpTheFirstIteration) {
  const EndedJob ran = over_tcp(
      2, {"train",       scenario(2), "--device",      "cuda",
          "--policy",    "1f1b",      "--text",        std::string(RRFP_SOURCE_DIR) + "/README.md",
          "--steps",     "1",         "--width",       "256",
          "--mlp-width", "512",       "--longest",     "160",
          "--shortest",  "32",        "--patience-ms", "2500"});
  EXPECT_EQ(ran.statuses, std::vector<int>(2, 0)) << ran.text;
}

TEST_F(CudaNcclProgram, DecisionsOverMpiAreMadeAgain) {
  if (const std::string why = no_mpi(); !why.empty()) GTEST_SKIP() << why;
  const std::string log = path_for("nccl.decisions.jsonl");
  const EndedProgram ran =
      mpirun(4, {"run", scenario(2, R"(, "data_parallel": {"replicas": 2})"), "--device",
                 "synthetic", "--policy", "bfw", "--decisions", log});
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_TRUE(ran.has("on 4 processes, 1 partition of 132 SMs (plain streams), NCCL 2."))
      << ran.text;
  const EndedProgram replayed = rrfp({"replay-log", log});
  EXPECT_EQ(replayed.status, 0) << replayed.text;
  EXPECT_TRUE(replayed.has("identical: ")) << replayed.text;
}

// See cuda_program_test.cc for the bound. What waits hangs on when notices are seen, which a
// stalled process does not know.
TEST_F(CudaNcclProgram, TheModelExplainsTheRun) {
  const std::string out = path_for("nccl.validation.json");
  const EndedJob ran = over_tcp(
      4, {"validate", scenario(4), "--device", "synthetic", "--iterations", "4", "--out", out});
  ASSERT_EQ(ran.statuses, (std::vector<int>{status_of_validation(ran.text), 0, 0, 0})) << ran.text;
  const Result<JsonDocument> json = read_json_file(out);
  ASSERT_TRUE(json.ok()) << json.error().message;
  for (const JsonValue& policy : *json->root.find("policies")->array()) {
    if (*policy.find("policy")->string() == "bfw") continue;
    EXPECT_LE(model_error_of(policy), .003) << ran.text;
  }
}

TEST_F(CudaNcclProgram, AKilledProcessEndsTheOthersWhoSayWhatTheyWaitedFor) {
  const EndedJob ran = over_tcp(4, {"run", scenario(4), "--device", "synthetic", "--inject",
                                    "kill:2:2F3", "--patience-ms", "500"});
  EXPECT_EQ(ran.statuses, (std::vector<int>{1, 1, 128 + SIGKILL, 1})) << ran.text;
  EXPECT_TRUE(ran.has("channel rank 2 -> rank 1")) << ran.text;
  EXPECT_TRUE(ran.has("channel rank 2 -> rank 3")) << ran.text;
}

TEST_F(CudaNcclProgram, ASilentProcessEndsTheJobOverMpi) {
  if (const std::string why = no_mpi(); !why.empty()) GTEST_SKIP() << why;
  const EndedProgram ran = mpirun(4, {"run", scenario(4), "--device", "synthetic", "--inject",
                                      "silent:2:2F3", "--patience-ms", "500"});
  EXPECT_NE(ran.status, 0) << ran.text;
  // Whichever is noticed first.
  EXPECT_TRUE(ran.has("rank 2 has not answered") || ran.has("the other end has not come within"))
      << ran.text;
  EXPECT_TRUE(ran.has("channel rank 2 -> rank 1")) << ran.text;
}

TEST_F(CudaNcclProgram, MoreProcessesThanGpusAreToldSo) {
  setenv("RRFP_DOUBLE_DEVICES", "1", 1);
  const EndedJob shared = over_tcp(2, {"run", scenario(2), "--device", "synthetic"});
  EXPECT_EQ(shared.statuses, std::vector<int>(2, 2)) << shared.text;
  EXPECT_TRUE(shared.has("rrfp run: processes 0 and 1 both have GPU ")) << shared.text;
  EXPECT_TRUE(shared.has("a LOCAL_RANK and a --gpu of its own")) << shared.text;
  setenv("RRFP_DOUBLE_DEVICES", "2", 1);
  const EndedJob missing = over_tcp(3, {"run", scenario(3), "--device", "synthetic"});
  EXPECT_EQ(missing.statuses, std::vector<int>(3, 2)) << missing.text;
  EXPECT_TRUE(missing.has("no CUDA device 2: the driver sees 2, numbered from 0")) << missing.text;
}

TEST_F(CudaNcclProgram, ProcessesOfAHostThatNobodyNumbersTakeAGpuEach) {
  setenv("RRFP_DOUBLE_DEVICES", "3", 1);
  const std::string process = "env -u LOCAL_RANK WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=" +
                              std::to_string(free_port()) + " RANK=$rank " RRFP_PROGRAM " run " +
                              scenario(3) + " --device synthetic";
  const EndedProgram ran = start({"bash", "-c",
                                  "for rank in 1 2; do " + process + " & done; rank=0; " + process +
                                      "; status=$?; wait; exit $status"});
  EXPECT_EQ(ran.status, 0) << ran.text;
  const EndedJob same = over_tcp(3, {"run", scenario(3), "--device", "synthetic", "--gpu", "1"});
  EXPECT_EQ(same.statuses, std::vector<int>(3, 2)) << same.text;
  EXPECT_TRUE(same.has("both have GPU ")) << same.text;
}

TEST_F(CudaNcclProgram, AModuleWithoutANameIsTheOneThatWasBuilt) {
  setenv("RRFP_CUDA_MODULE", "", 1);
  const EndedProgram listed = rrfp({"devices"});
  EXPECT_EQ(listed.status, 0) << listed.text;
  EXPECT_FALSE(listed.has("the module does not load")) << listed.text;
}

}  // namespace
}  // namespace rrfp
