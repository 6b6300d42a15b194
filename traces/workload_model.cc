#include "traces/workload_model.h"

#include <array>
#include <vector>

#include "scheduler_core/nearest.h"

namespace rrfp {

namespace {

constexpr TransformerShape llama_like(int layers, std::int64_t hidden, int heads, int kv_heads,
                                      std::int64_t ffn) {
  TransformerShape shape;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_size = hidden / heads;
  shape.ffn = ffn;
  return shape;
}

constexpr TransformerShape gpt_like(int layers, std::int64_t hidden, int heads) {
  TransformerShape shape = llama_like(layers, hidden, heads, heads, 4 * hidden);
  shape.gated = false;
  shape.qkv_bias = true;
  shape.linear_bias = true;
  shape.norm_bias = true;
  shape.dropout = true;
  return shape;
}

constexpr TransformerShape qwen2_like(int layers, std::int64_t hidden, int heads, int kv_heads,
                                      std::int64_t ffn) {
  TransformerShape shape = llama_like(layers, hidden, heads, kv_heads, ffn);
  shape.qkv_bias = true;
  return shape;
}

constexpr TransformerShape with_experts(TransformerShape shape, int experts, int per_token) {
  shape.experts = experts;
  shape.experts_per_token = per_token;
  return shape;
}

constexpr TransformerShape qwen3_30b_a3b() {
  TransformerShape shape = with_experts(llama_like(48, 2048, 32, 4, 768), 128, 8);
  shape.head_size = 128;
  shape.query_key_norm = true;
  return shape;
}

// Windows of 112 x 112 pixels, 8 x 8 patches of 14; every eighth layer sees the whole image.
constexpr VisionShape qwen25_vision(std::int64_t ffn) {
  VisionShape vision;
  vision.transformer = llama_like(32, 1280, 16, 16, ffn);
  vision.transformer.causal = false;
  vision.transformer.window = 64;
  vision.transformer.full_attention_layers = 4;
  vision.transformer.qkv_bias = true;
  vision.transformer.linear_bias = true;
  vision.patch = 14;
  vision.frames = 2;
  vision.merge = 2;
  return vision;
}

// name, title, language, vocabulary, learned positions, tied, vision, source
constexpr std::array<ModelShape, 9> kModels = {{
    {"llama3-8b", "Llama 3 8B", llama_like(32, 4096, 32, 8, 14336), 128256, 0, false, std::nullopt,
     "config.json of meta-llama/Meta-Llama-3-8B; arXiv 2407.21783, table 3"},
    {"llama3-70b", "Llama 3 70B", llama_like(80, 8192, 64, 8, 28672), 128256, 0, false,
     std::nullopt, "config.json of meta-llama/Meta-Llama-3-70B; arXiv 2407.21783, table 3"},
    {"llama3-405b", "Llama 3.1 405B", llama_like(126, 16384, 128, 8, 53248), 128256, 0, false,
     std::nullopt, "config.json of meta-llama/Llama-3.1-405B; arXiv 2407.21783, table 3"},
    {"gpt3-175b", "GPT-3 175B", gpt_like(96, 12288, 96), 50257, 2048, true, std::nullopt,
     "arXiv 2005.14165, table 2.1; vocabulary of GPT-2"},
    {"mixtral-8x7b", "Mixtral 8x7B", with_experts(llama_like(32, 4096, 32, 8, 14336), 8, 2), 32000,
     0, false, std::nullopt,
     "config.json of mistralai/Mixtral-8x7B-v0.1; arXiv 2401.04088, table 1"},
    {"qwen3-30b-a3b", "Qwen3 30B-A3B", qwen3_30b_a3b(), 151936, 0, false, std::nullopt,
     "config.json of Qwen/Qwen3-30B-A3B; arXiv 2505.09388, table 2"},
    {"qwen2.5-vl-7b", "Qwen2.5-VL 7B", qwen2_like(28, 3584, 28, 4, 18944), 152064, 0, false,
     qwen25_vision(3420), "config.json of Qwen/Qwen2.5-VL-7B-Instruct; arXiv 2502.13923, table 1"},
    {"qwen2.5-vl-32b", "Qwen2.5-VL 32B", qwen2_like(64, 5120, 40, 8, 27648), 152064, 0, false,
     qwen25_vision(3456), "config.json of Qwen/Qwen2.5-VL-32B-Instruct"},
    {"qwen2.5-vl-72b", "Qwen2.5-VL 72B", qwen2_like(80, 8192, 64, 8, 29568), 152064, 0, false,
     qwen25_vision(3456), "config.json of Qwen/Qwen2.5-VL-72B-Instruct; arXiv 2502.13923, table 1"},
}};

std::int64_t norm_parameters(const TransformerShape& shape, std::int64_t size) {
  return shape.norm_bias ? 2 * size : size;
}

std::int64_t query_size(const TransformerShape& shape) { return shape.heads * shape.head_size; }
std::int64_t key_size(const TransformerShape& shape) { return shape.kv_heads * shape.head_size; }

std::int64_t attention_matrices(const TransformerShape& shape) {
  return shape.hidden * (2 * query_size(shape) + 2 * key_size(shape));
}

std::int64_t mlp_matrices(const TransformerShape& shape) {
  return (shape.gated ? 3 : 2) * shape.hidden * shape.ffn;
}

std::int64_t router_matrix(const TransformerShape& shape) { return shape.hidden * shape.experts; }

// What is not a matrix: norms and biases. With experts, biases are those of one.
std::int64_t vectors(const TransformerShape& shape) {
  std::int64_t count = 2 * norm_parameters(shape, shape.hidden);
  if (shape.query_key_norm) count += 2 * norm_parameters(shape, shape.head_size);
  if (shape.qkv_bias) count += query_size(shape) + 2 * key_size(shape);
  if (shape.linear_bias) count += 2 * shape.hidden + (shape.gated ? 2 : 1) * shape.ffn;
  return count;
}

}  // namespace

std::int64_t active_matrix_elements(const TransformerShape& shape) {
  const std::int64_t mlps = shape.experts == 0 ? 1 : shape.experts_per_token;
  return attention_matrices(shape) + router_matrix(shape) + mlps * mlp_matrices(shape);
}

std::int64_t active_layer_parameters(const TransformerShape& shape) {
  return active_matrix_elements(shape) + vectors(shape);
}

std::int64_t layer_parameters(const TransformerShape& shape) {
  const std::int64_t mlps = shape.experts == 0 ? 1 : shape.experts;
  return attention_matrices(shape) + router_matrix(shape) + mlps * mlp_matrices(shape) +
         vectors(shape);
}

std::int64_t embedding_parameters(const ModelShape& model) {
  return (model.vocabulary + model.learned_positions) * model.language.hidden;
}

std::int64_t head_parameters(const ModelShape& model) {
  return model.vocabulary * model.language.hidden +
         norm_parameters(model.language, model.language.hidden);
}

std::int64_t patch_embedding_parameters(const VisionShape& vision) {
  return std::int64_t{vision.channels} * vision.frames * vision.patch * vision.patch *
         vision.transformer.hidden;
}

std::int64_t projector_parameters(const VisionShape& vision, std::int64_t language_hidden) {
  const std::int64_t merged = vision.transformer.hidden * vision.merge * vision.merge;
  return norm_parameters(vision.transformer, vision.transformer.hidden) + merged * merged + merged +
         merged * language_hidden + language_hidden;
}

std::int64_t language_parameters(const ModelShape& model) {
  const std::int64_t tied = model.tied ? model.vocabulary * model.language.hidden : 0;
  return embedding_parameters(model) + model.language.layers * layer_parameters(model.language) +
         head_parameters(model) - tied;
}

std::int64_t vision_parameters(const ModelShape& model) {
  if (!model.vision) return 0;
  const TransformerShape& encoder = model.vision->transformer;
  return patch_embedding_parameters(*model.vision) + encoder.layers * layer_parameters(encoder) +
         projector_parameters(*model.vision, model.language.hidden);
}

std::span<const ModelShape> named_models() { return kModels; }

Result<ModelShape> find_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ModelShape& model : kModels) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  std::string all;
  for (const std::string_view known : by_nearness(name, names)) {
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  return Error{"no model is called " + std::string(name) + "; expected one of " + all};
}

}  // namespace rrfp
