// Goal: a model's shape gives the published number of parameters, and its
// layers the FLOPs and bytes of the published formulas.
#include "traces/workload_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "traces/workload_layers.h"

namespace rrfp {
namespace {

Machine machine_of(double tp, bool flash) {
  Machine machine;
  machine.gpu = *find_gpu("a100");
  machine.tp = static_cast<int>(tp);
  machine.flash_attention = flash;
  return machine;
}

ModelShape model_of(std::string_view name) {
  const Result<ModelShape> model = find_model(name);
  EXPECT_TRUE(model.ok()) << name;
  return *model;
}

// As the checkpoints on the model hubs count them.
TEST(WorkloadModel, ParametersAreThePublishedOnes) {
  struct Published {
    const char* name;
    std::int64_t language;
    std::int64_t vision;
  };
  for (const Published& published :
       {Published{"llama3-8b", 8'030'261'248, 0}, Published{"llama3-70b", 70'553'706'496, 0},
        Published{"llama3-405b", 405'853'388'800, 0}, Published{"mixtral-8x7b", 46'702'792'704, 0},
        Published{"qwen3-30b-a3b", 30'532'122'624, 0},
        Published{"qwen2.5-vl-7b", 7'615'616'512, 676'550'144}}) {
    EXPECT_EQ(language_parameters(model_of(published.name)), published.language) << published.name;
    EXPECT_EQ(vision_parameters(model_of(published.name)), published.vision) << published.name;
  }
  const auto total = [](std::string_view name) {
    const ModelShape model = model_of(name);
    return static_cast<double>(language_parameters(model) + vision_parameters(model)) / 1e9;
  };
  EXPECT_NEAR(total("gpt3-175b"), 174.6, 0.05);
  EXPECT_NEAR(total("qwen2.5-vl-32b"), 33.45, 0.005);
  EXPECT_NEAR(total("qwen2.5-vl-72b"), 73.41, 0.005);
}

// Active parameters of the mixtures of experts: 12.9B (arXiv 2401.04088) and 3.3B (model card).
TEST(WorkloadModel, ATokenMeetsTheExpertsItGoesTo) {
  const auto active = [](std::string_view name) {
    const ModelShape model = model_of(name);
    return static_cast<double>(embedding_parameters(model) + head_parameters(model) +
                               model.language.layers * active_layer_parameters(model.language)) /
           1e9;
  };
  EXPECT_NEAR(active("mixtral-8x7b"), 12.88, 0.01);
  EXPECT_NEAR(active("qwen3-30b-a3b"), 3.35, 0.05);
  EXPECT_NEAR(active("llama3-8b"), 8.03, 0.01);
}

TEST(WorkloadModel, UnknownNamesListTheKnownOnesNearestFirst) {
  const Result<ModelShape> model = find_model("llama3-8");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().message.find(
                "no model is called llama3-8; expected one of llama3-8b, llama3-70b"),
            0u)
      << model.error().message;
  const Result<Gpu> gpu = find_gpu("h10");
  ASSERT_FALSE(gpu.ok());
  EXPECT_EQ(gpu.error().message.find("no GPU is called h10; expected one of h100"), 0u)
      << gpu.error().message;
}

// 72 b s l h^2 (1 + s / 6h + V / 12lh), Narayanan et al., arXiv 2104.04473, without recomputation.
TEST(WorkloadModel, FlopsOfAGptAreTheFormula) {
  ModelShape model = model_of("gpt3-175b");
  model.language.causal = false;  // as the formula counts
  MicrobatchShape batch;
  batch.sequences = 3;
  batch.tokens = 2048;
  Machine machine = machine_of(1, false);
  const Result<std::vector<LayerCost>> layers = model_layers(model, batch, machine);
  ASSERT_TRUE(layers.ok());
  double ns = 0;
  for (const LayerCost& layer : *layers) {
    if (layer.kind == LayerKind::kEmbedding) continue;  // copies, no FLOPs
    const LayerWork& time = layer.time_ns;
    ns += time.forward.sum() + time.input_gradient.sum() + time.weight_gradient.sum();
  }
  const double flops = ns / 1e9 * machine.gpu.flops * machine.efficiency;
  const double l = 96;
  const double h = 12288;
  const double s = 2048;
  const double expected = 72 * 3 * s * l * h * h * (1 + s / (6 * h) + 50257 / (12 * l * h));
  EXPECT_NEAR(flops / expected, 1, 1e-12);
}

// 6 N D for every matrix that a token meets, and attention over half of all pairs.
TEST(WorkloadModel, FlopsAreSixPerParameterAndTokenPlusAttention) {
  for (const char* name : {"llama3-8b", "qwen3-30b-a3b"}) {
    const TransformerShape shape = model_of(name).language;
    const double s = 4096;
    const LayerWork work = layer_flops(shape, 2, s, 0, false);
    const double all =
        work.forward.linear + work.input_gradient.linear + work.weight_gradient.linear;
    EXPECT_DOUBLE_EQ(all, 6.0 * static_cast<double>(active_matrix_elements(shape)) * 2 * s);
    const double query = static_cast<double>(shape.heads * shape.head_size);
    EXPECT_DOUBLE_EQ(work.forward.quadratic, 2 * 4 * s * s / 2 * query);
    EXPECT_DOUBLE_EQ(work.input_gradient.quadratic, 2 * work.forward.quadratic);
    EXPECT_EQ(work.weight_gradient.quadratic, 0);
    // Flash attention computes the scores again.
    const LayerWork flash = layer_flops(shape, 2, s, 0, true);
    EXPECT_DOUBLE_EQ(flash.input_gradient.quadratic, 2.5 * work.forward.quadratic);
    // Twice the length: twice the linear part, four times the attention.
    const LayerWork twice = layer_flops(shape, 2, 2 * s, 0, false);
    EXPECT_DOUBLE_EQ(twice.forward.linear, 2 * work.forward.linear);
    EXPECT_DOUBLE_EQ(twice.forward.quadratic, 4 * work.forward.quadratic);
  }
}

// Layers 7, 15, 23 and 31 of the encoder see whole images, the others 64 patches.
TEST(WorkloadModel, WindowsMakeAttentionLinear) {
  const TransformerShape shape = model_of("qwen2.5-vl-7b").vision->transformer;
  int whole = 0;
  for (int layer = 0; layer < shape.layers; ++layer) {
    const LayerWork work = layer_flops(shape, 1, 1024, layer, false);
    const bool windowed = work.forward.quadratic == 0;
    EXPECT_EQ(windowed, layer % 8 != 7) << layer;
    whole += windowed ? 0 : 1;
  }
  EXPECT_EQ(whole, 4);
  const double outside = layer_flops(shape, 1, 1024, 7, false).forward.sum();
  const double inside = layer_flops(shape, 1, 1024, 0, false).forward.sum();
  EXPECT_DOUBLE_EQ(outside - inside, 4.0 * 1024 * (1024 - 64) * 1280);
  // An image of fewer patches than the window has no more to attend to.
  EXPECT_DOUBLE_EQ(layer_flops(shape, 1, 16, 0, false).forward.sum(),
                   layer_flops(shape, 1, 16, 7, false).forward.sum());
}

// Korthikanti et al., arXiv 2205.05198: s b h (34 + 5 a s / h), / tp with sequence parallelism;
// Qi et al., arXiv 2401.10241: 32 s b h for the weight gradient.
TEST(WorkloadModel, ActivationsOfAGptLayerAreTheFormula) {
  const ModelShape model = model_of("gpt3-175b");
  MicrobatchShape batch;
  batch.sequences = 2;
  batch.tokens = 2048;
  const double sbh = 2048.0 * 2 * 12288;
  for (const double tp : {1.0, 8.0}) {
    const LayerCost kept = (*model_layers(model, batch, machine_of(tp, false)))[1];
    ASSERT_EQ(kept.kind, LayerKind::kTransformer);
    EXPECT_NEAR(kept.activation_bytes, sbh * (34 + 5.0 * 96 * 2048 / 12288) / tp, 1);
    const LayerCost flash = (*model_layers(model, batch, machine_of(tp, true)))[1];
    EXPECT_NEAR(flash.activation_bytes, 34 * sbh / tp, 1);
    EXPECT_NEAR(flash.stash_bytes, 32 * sbh / tp, 1);
    EXPECT_NEAR(flash.output_bytes, 2 * sbh / tp, 1);
  }
}

// Fewer keys and a smaller MLP of three matrices come to the same 34.
TEST(WorkloadModel, ActivationsOfLlamaAreThirtyFourToo) {
  MicrobatchShape batch;
  batch.tokens = 8192;
  const LayerCost layer = (*model_layers(model_of("llama3-8b"), batch, machine_of(1, true)))[1];
  EXPECT_DOUBLE_EQ(layer.activation_bytes, 34.0 * 8192 * 4096);
}

TEST(WorkloadModel, TensorParallelismDividesTheWorkAndAddsExchanges) {
  MicrobatchShape batch;
  batch.tokens = 4096;
  const LayerCost one = (*model_layers(model_of("llama3-8b"), batch, machine_of(1, true)))[1];
  const LayerCost four = (*model_layers(model_of("llama3-8b"), batch, machine_of(4, true)))[1];
  EXPECT_DOUBLE_EQ(four.parameters, one.parameters / 4);
  // Two tensors gathered and two scattered, three quarters of 2 s h bytes each, at 300 GB/s.
  const double exchange_ns = 4 * 0.75 * 2 * 4096 * 4096 / 300e9 * 1e9;
  EXPECT_NEAR(four.time_ns.forward.sum(), one.time_ns.forward.sum() / 4 + exchange_ns, 1e-3);
  EXPECT_NEAR(four.time_ns.input_gradient.sum(), one.time_ns.input_gradient.sum() / 4 + exchange_ns,
              1e-3);
  // For the weights, the two tensors that were read are gathered again; the head reads one.
  EXPECT_NEAR(four.time_ns.weight_gradient.sum(),
              one.time_ns.weight_gradient.sum() / 4 + exchange_ns / 2, 1e-3);
  const LayerCost head = model_layers(model_of("llama3-8b"), batch, machine_of(1, true))->back();
  const LayerCost cut = model_layers(model_of("llama3-8b"), batch, machine_of(4, true))->back();
  EXPECT_NEAR(cut.time_ns.weight_gradient.sum(),
              head.time_ns.weight_gradient.sum() / 4 + exchange_ns / 4, 1e-3);
}

TEST(WorkloadModel, ImagesThatDoNotFitAreNamed) {
  MicrobatchShape batch;
  batch.tokens = 1024;
  batch.images = 5;
  batch.patches = 1024;
  const auto fault = [&batch](std::string_view model) {
    const auto layers = model_layers(model_of(model), batch, machine_of(1, true));
    return layers.ok() ? std::string() : layers.error().message;
  };
  EXPECT_EQ(fault("llama3-8b"), "llama3-8b takes no images; found 5 per sequence");
  EXPECT_EQ(fault("qwen2.5-vl-7b"),
            "the images of a sequence are 1280 tokens; expected at most its length, 1024");
  batch.patches = 1023;
  EXPECT_EQ(fault("qwen2.5-vl-7b"),
            "found images of 1023 patches; expected a multiple of 4, which the projector makes one "
            "token of");
  batch.patches = 512;
  EXPECT_EQ(fault("qwen2.5-vl-7b"), "");
}

}  // namespace
}  // namespace rrfp
