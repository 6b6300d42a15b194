// Goal: layers become stages with the right sums; frozen parts lose exactly
// the work and memory that they do not need; memory adds up.
#include "traces/workload.h"

#include <gtest/gtest.h>

#include <functional>

namespace rrfp {
namespace {

WorkloadRequest request_of(std::string_view name, int pp, int images = 0) {
  MicrobatchShape batch;
  batch.tokens = 4096;
  batch.images = images;
  batch.patches = 1024;
  Machine machine;
  machine.gpu = *find_gpu("h100");
  WorkloadRequest request;
  request.layers = *model_layers(*find_model(name), batch, machine);
  request.gpu = machine.gpu;
  request.pp = pp;
  return request;
}

Workload made(const WorkloadRequest& request) {
  Result<Workload> workload = make_workload(request);
  EXPECT_TRUE(workload.ok()) << workload.error().message;
  return workload.ok() ? *std::move(workload) : Workload();
}

std::string fault_of(const WorkloadRequest& request) {
  const Result<Workload> workload = make_workload(request);
  return workload.ok() ? "none" : workload.error().message;
}

double sum(const Workload& workload, const std::function<double(const WorkloadStage&)>& value) {
  double total = 0;
  for (const WorkloadStage& stage : workload.stages) total += value(stage);
  return total;
}

TEST(Workload, StagesHoldAllLayersOnce) {
  for (const char* layout : {"even", "balanced", "Et*7|t*8|t*8|t*9L"}) {
    WorkloadRequest request = request_of("llama3-8b", 4);
    request.layout = layout;
    const Workload workload = made(request);
    ASSERT_EQ(workload.stages.size(), 4u);
    EXPECT_EQ(sum(workload, [](const WorkloadStage& stage) { return stage.parameters; }),
              8'030'261'248.0);
    double forward = 0;
    for (const LayerCost& layer : request.layers) forward += layer.time_ns.forward.sum();
    EXPECT_NEAR(
        sum(workload, [](const WorkloadStage& stage) { return stage.time_ns.forward.sum(); }),
        forward, 1);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(workload.stages[i].spec.rank, static_cast<int>(i));
      EXPECT_EQ(workload.stages[i].spec.backward, Backward::kFull);
      EXPECT_EQ(workload.stages[i].output_bytes == 0, i == 3) << layout;
    }
  }
  WorkloadRequest request = request_of("llama3-8b", 4);
  EXPECT_EQ(made(request).stages[0].contents, "E t*8");
  EXPECT_EQ(made(request).stages[3].contents, "t*8 L");
}

TEST(Workload, ChunksAreLooped) {
  WorkloadRequest request = request_of("llama3-8b", 4);
  request.chunks = 2;
  const Workload workload = made(request);
  ASSERT_EQ(workload.stages.size(), 8u);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(workload.stages[static_cast<std::size_t>(i)].spec.rank, i % 4);
  }
  // Both chunks of a rank share its memory.
  EXPECT_NEAR(workload.budget_bytes[1],
              80e9 - workload.stages[1].state_bytes - workload.stages[5].state_bytes, 1);
}

// 18 and 16 bytes per parameter; 6 + 12 / d with a distributed optimizer (Megatron-LM's figures).
TEST(Workload, StateTakesTheBytesOfTheOptimizer) {
  WorkloadRequest request = request_of("llama3-8b", 1);
  const double parameters = 8'030'261'248.0;
  EXPECT_NEAR(made(request).stages[0].state_bytes, 18 * parameters, 1);
  request.dp = 4;
  EXPECT_NEAR(made(request).stages[0].state_bytes, 18 * parameters, 1);
  request.state.distributed = true;
  EXPECT_NEAR(made(request).stages[0].state_bytes, (6 + 12.0 / 4) * parameters, 1);
  request.state.gradient = 2;
  request.state.distributed = false;
  EXPECT_NEAR(made(request).stages[0].state_bytes, 16 * parameters, 1);
  EXPECT_LT(made(request).budget_bytes[0], 0);
}

// A ring moves (d - 1) / d of the gradients twice.
TEST(Workload, GradientsAreSummedOverTheNetwork) {
  WorkloadRequest request = request_of("llama3-8b", 1);
  EXPECT_EQ(made(request).stages[0].gradient_sync_ns, 0);
  request.dp = 4;
  const double ns = 1e9 * 8'030'261'248.0 * (4 + 4) * 3 / 4 / 50e9;
  EXPECT_NEAR(made(request).stages[0].gradient_sync_ns, ns, 1e3);
  request.state.distributed = true;  // gradients in fp32 there, weights in bf16 back
  EXPECT_NEAR(made(request).stages[0].gradient_sync_ns, ns * 6 / 8, 1e3);
}

TEST(Workload, TheEmbeddingHasNoInputGradient) {
  const WorkloadRequest request = request_of("llama3-8b", 32);
  const Workload workload = made(request);
  const WorkloadStage& first = workload.stages[0];
  ASSERT_EQ(first.contents, "E t");
  EXPECT_DOUBLE_EQ(first.time_ns.input_gradient.sum(),
                   request.layers[1].time_ns.input_gradient.sum());
  EXPECT_GT(first.time_ns.weight_gradient.sum(), request.layers[1].time_ns.weight_gradient.sum());
}

TEST(Workload, AFrozenEncoderHasNoBackward) {
  WorkloadRequest request = request_of("qwen2.5-vl-7b", 8, 4);
  request.frozen_encoder = true;
  request.encoder_ranks = 2;
  const Workload workload = made(request);
  ASSERT_EQ(workload.stages.size(), 8u);
  EXPECT_EQ(workload.stages[0].contents, "patches v*16");
  EXPECT_EQ(workload.stages[1].contents, "v*16");
  EXPECT_EQ(workload.stages[2].contents, "projector E t*5");
  for (std::size_t i = 0; i < 2; ++i) {
    const WorkloadStage& stage = workload.stages[i];
    EXPECT_EQ(stage.spec.backward, Backward::kNone);
    EXPECT_EQ(stage.time_ns.input_gradient.sum() + stage.time_ns.weight_gradient.sum(), 0);
    EXPECT_NEAR(stage.state_bytes, 2 * stage.parameters, 1);
    EXPECT_EQ(stage.stash_bytes, 0);
    // One layer's worth while it runs; nothing is kept.
    EXPECT_EQ(stage.activation_bytes, request.layers[1].activation_bytes);
    EXPECT_EQ(stage.gradient_sync_ns, 0);
  }
  EXPECT_EQ(workload.stages[2].spec.backward, Backward::kFull);
  // Trained, the projector is the encoder's.
  request.frozen_encoder = false;
  EXPECT_EQ(made(request).stages[1].contents, "v*16 projector");
  EXPECT_EQ(made(request).stages[0].spec.backward, Backward::kFull);
}

TEST(Workload, AFrozenLanguageModelPassesGradientsOn) {
  WorkloadRequest request = request_of("qwen2.5-vl-7b", 8, 4);
  const Workload trained = made(request);
  request.frozen_language = true;
  const Workload workload = made(request);
  EXPECT_EQ(workload.stages[0].spec.backward, Backward::kFull);
  for (std::size_t i = 1; i < 8; ++i) {
    const WorkloadStage& stage = workload.stages[i];
    EXPECT_EQ(stage.spec.backward, Backward::kInput) << i;
    EXPECT_EQ(stage.time_ns.weight_gradient.sum(), 0);
    EXPECT_DOUBLE_EQ(stage.time_ns.input_gradient.sum(),
                     trained.stages[i].time_ns.input_gradient.sum());
    EXPECT_LT(stage.activation_bytes, trained.stages[i].activation_bytes);
    EXPECT_GT(stage.activation_bytes, 0);
  }
  // Only the projector learns: its stage has a weight gradient, the encoder before it nothing.
  request.frozen_encoder = true;
  const Workload projector = made(request);
  EXPECT_EQ(projector.stages[0].spec.backward, Backward::kNone);
  EXPECT_EQ(projector.stages[1].spec.backward, Backward::kFull);
  EXPECT_GT(projector.stages[1].time_ns.weight_gradient.sum(), 0);
  EXPECT_EQ(projector.stages[2].spec.backward, Backward::kInput);
}

TEST(Workload, CopiesOfTheEncoderShareTheImages) {
  WorkloadRequest request = request_of("qwen2.5-vl-7b", 8, 4);
  const Workload chain = made(request);
  request.encoder = EncoderPlacement::kSideBySide;
  request.encoder_ranks = 2;
  request.dp = 3;
  const Workload workload = made(request);
  ASSERT_EQ(workload.stages.size(), 8u);
  for (std::size_t i = 0; i < 2; ++i) {
    const WorkloadStage& copy = workload.stages[i];
    EXPECT_TRUE(copy.spec.predecessors.empty());
    EXPECT_NEAR(copy.time_ns.forward.sum(), chain.stages[0].time_ns.forward.sum() / 2, 1);
    EXPECT_EQ(copy.parameters, chain.stages[0].parameters);
    EXPECT_NEAR(copy.activation_bytes, chain.stages[0].activation_bytes / 2, 1);
    EXPECT_NEAR(copy.output_bytes, chain.stages[0].output_bytes / 2, 1);
    // Summed over 3 replicas of 2 copies.
    EXPECT_NEAR(copy.gradient_sync_ns, 1e9 * copy.parameters * 8 * 5 / 6 / 50e9, 1);
  }
  EXPECT_EQ(workload.stages[2].spec.predecessors, (std::vector<int>{0, 1}));
  EXPECT_EQ(workload.stages[3].spec.predecessors, (std::vector<int>{2}));
  ProgramSpec spec;
  spec.ranks = 8;
  spec.microbatches = 4;
  spec.split_backward = true;
  for (const WorkloadStage& stage : workload.stages) spec.stages.push_back(stage.spec);
  EXPECT_TRUE(Program::create(spec).ok());
}

TEST(Workload, ABalancedChainIsCutAnywhere) {
  WorkloadRequest request = request_of("qwen2.5-vl-7b", 8, 4);
  request.layout = "balanced";
  const Workload workload = made(request);
  const auto cost = [](const WorkloadStage& stage) {
    const LayerWork& time = stage.time_ns;
    return time.forward.sum() + time.input_gradient.sum() + time.weight_gradient.sum();
  };
  double most = 0;
  for (const WorkloadStage& stage : workload.stages) most = std::max(most, cost(stage));
  EXPECT_LT(most, 1.15 * sum(workload, cost) / 8);
  // A frozen encoder is cut by its forwards alone.
  request.frozen_encoder = true;
  const Workload frozen = made(request);
  most = 0;
  for (const WorkloadStage& stage : frozen.stages) most = std::max(most, cost(stage));
  EXPECT_LT(most, 1.15 * sum(frozen, cost) / 8);
  EXPECT_GT(cost(frozen.stages[0]), 0.8 * most) << frozen.stages[0].contents;
}

TEST(Workload, WhatDoesNotFitIsNamed) {
  WorkloadRequest request = request_of("llama3-8b", 4);
  request.encoder_ranks = 1;
  EXPECT_EQ(fault_of(request), "ranks for an encoder are given, but there are no images");
  request = request_of("qwen2.5-vl-7b", 4, 1);
  request.encoder_ranks = 4;
  EXPECT_EQ(fault_of(request),
            "found 4 ranks for the encoder of 4 in all; expected at least 1 for it and 1 for the "
            "language model");
  request.encoder_ranks = 1;
  request.chunks = 2;
  EXPECT_EQ(fault_of(request), "a model with an encoder has one stage per rank; found 2 chunks");
  request = request_of("llama3-8b", 64);
  EXPECT_EQ(fault_of(request),
            "found 64 stages for 32 layers; expected at most as many stages as layers");
  request.layout = "Et*32L";
  EXPECT_EQ(fault_of(request), "layout \"Et*32L\" has 1 stages; expected 64");
}

}  // namespace
}  // namespace rrfp
