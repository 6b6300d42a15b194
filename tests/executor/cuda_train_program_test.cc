// Goal: `rrfp train --device cuda` as a user starts it, on the double of a CUDA
// device: every policy of a scenario trains to the same weights, near those of
// the CPU, and its decisions can be made again. Where there is no device, one
// clear sentence and status 2.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/executor/program_for_tests.h"

namespace rrfp {
namespace {

class CudaTrainProgram : public testing::Test {
 protected:
  void SetUp() override { setenv("RRFP_CUDA_MODULE", module("librrfp_cuda_double.so").c_str(), 1); }
  void TearDown() override { unsetenv("RRFP_CUDA_MODULE"); }

  static std::string module(const std::string& name) {
    return (std::filesystem::path(RRFP_PROGRAM).parent_path() / name).string();
  }

  // Two replicas of two ranks of two lanes.
  static std::string scenario() {
    return write_text("train.json",
                      R"({"schema": "rrfp.scenario/1", "name": "s", "seed": 3, "iterations": 3,
  "pipeline": {"ranks": 2, "microbatches": 4, "split_backward": true, "ordered_accumulation": true},
  "durations": {"forward_us": 200, "input_gradient_us": 200, "weight_gradient_us": 200},
  "network": {"latency_us": 100},
  "variability": [{"model": "lognormal", "on": "compute", "cv": 0.5}],
  "tensor_parallel": {"lanes": 2}, "data_parallel": {"replicas": 2, "gradient_sync_us": 50},
  "policies": [{"name": "1f1b", "hint": "1f1b", "fixed": true}, {"name": "bf", "hint": "bf"},
               {"name": "zb-h2", "hint": "zb-h2"},
               {"name": "bfw", "hint": "bfw", "anticipation": true}]})");
  }
  static EndedProgram train(std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "train",      scenario(), "--text",    std::string(RRFP_SOURCE_DIR) + "/README.md",
        "--steps",    "3",        "--longest", "16",
        "--shortest", "8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return rrfp(arguments);
  }
};

std::string weights_of(const std::string& text) {
  const std::size_t at = text.find("weights 0x");
  return at == std::string::npos ? "" : text.substr(at, 26);
}

TEST_F(CudaTrainProgram, EveryPolicyTrainsToTheSameWeightsNearThoseOfTheCpu) {
  std::string first;
  for (const char* policy : {"1f1b", "bf", "zb-h2", "bfw"}) {
    const std::string log = path_for("train.decisions.jsonl");
    const EndedProgram ran =
        train({"--device", "cuda", "--policy", policy, "--paced", "--check", "--decisions", log});
    ASSERT_EQ(ran.status, 0) << ran.text;
    EXPECT_TRUE(ran.has("device: 8 partitions of 16 SMs (plain streams); activations took"))
        << ran.text;
    EXPECT_TRUE(ran.has("weights differ from those of a serial run in double precision, by "))
        << ran.text;
    ASSERT_NE(weights_of(ran.text), "") << ran.text;
    if (first.empty()) first = weights_of(ran.text);
    EXPECT_EQ(weights_of(ran.text), first) << policy;
    EXPECT_EQ(rrfp({"replay-log", log}).status, 0) << policy;
  }
}

// It has figures of no iteration.
TEST_F(CudaTrainProgram, ABlockedRunSaysNothingOfActivations) {
  const std::string blocked = write_text("blocked.json", R"({"schema": "rrfp.scenario/1",
  "name": "s", "pipeline": {"ranks": 2, "microbatches": 2},
  "durations": {"forward_us": 200, "backward_us": 200},
  "policies": [{"name": "p", "fixed": true, "hint": {"order": [["0F0", "0B0", "0F1", "0B1"],
                                                              ["1F1", "1B1", "1F0", "1B0"]]}}]})");
  const EndedProgram ran =
      rrfp({"train", blocked, "--text", std::string(RRFP_SOURCE_DIR) + "/README.md", "--steps", "1",
            "--longest", "16", "--shortest", "8", "--device", "cuda"});
  EXPECT_EQ(ran.status, 3) << ran.text;
  EXPECT_TRUE(ran.has("device: 2 partitions of 66 SMs (plain streams)\n")) << ran.text;
  EXPECT_FALSE(ran.has("activations took")) << ran.text;
}

TEST_F(CudaTrainProgram, WhatIsNotThereOrMakesNoSenseIsSaidInOneSentence) {
  setenv("RRFP_CUDA_MODULE", module("no_such_module.so").c_str(), 1);
  const EndedProgram ran = train({"--device", "cuda"});
  EXPECT_EQ(ran.status, 2) << ran.text;
  EXPECT_EQ(ran.text.rfind("rrfp train: no CUDA device: ", 0), 0U) << ran.text;
  EXPECT_EQ(ran.count("\n"), 1) << ran.text;
  const EndedProgram coarse = train({"--tf32"});
  EXPECT_EQ(coarse.status, 2) << coarse.text;
  EXPECT_TRUE(coarse.has("--tf32 needs --device cuda")) << coarse.text;
}

TEST_F(CudaTrainProgram, ARealDeviceIsThereOrIsSaidNotToBe) {
  if (!std::filesystem::exists(module("librrfp_cuda.so"))) {
    GTEST_SKIP() << "built without the module for real devices";
  }
  unsetenv("RRFP_CUDA_MODULE");
  const bool there = rrfp({"devices"}).has("cuda  device 0: ");
  const EndedProgram ran = train({"--device", "cuda"});
  EXPECT_EQ(ran.text.rfind("rrfp train: no CUDA device: ", 0) == 0, !there) << ran.text;
  if (!there) {
    EXPECT_EQ(ran.status, 2) << ran.text;
  }
}

}  // namespace
}  // namespace rrfp
