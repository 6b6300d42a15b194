#include "traces/workload_layers.h"

#include <algorithm>

namespace rrfp {

namespace {

constexpr double kBf16 = 2;  // bytes
constexpr double kFp32 = 4;

// Every `layers / full_attention_layers`-th layer has no window.
bool has_window(const TransformerShape& shape, int layer) {
  if (shape.window == 0) return false;
  if (shape.full_attention_layers == 0) return true;
  return (layer + 1) % (shape.layers / shape.full_attention_layers) != 0;
}

// The tokens that one attends to: a window is no longer than what there is.
double attended_tokens(const TransformerShape& shape, int layer, double tokens) {
  return has_window(shape, layer) ? std::min(static_cast<double>(shape.window), tokens) : tokens;
}

double query_size(const TransformerShape& shape) {
  return static_cast<double>(shape.heads * shape.head_size);
}

double key_size(const TransformerShape& shape) {
  return static_cast<double>(shape.kv_heads * shape.head_size);
}

// The matrices of a layer, by linear maps: forward, and both gradients, cost the same.
LayerWork matrix_flops(double elements, double tokens) {
  const Growth pass{2 * elements * tokens, 0};
  return {pass, pass, pass};
}

LayerWork in_ns(const LayerWork& flops, const Machine& machine) {
  const double ns_per_flop = 1e9 / (machine.gpu.flops * machine.efficiency * machine.tp);
  return {flops.forward * ns_per_flop, flops.input_gradient * ns_per_flop,
          flops.weight_gradient * ns_per_flop};
}

// Gathering (or reducing and scattering) a tensor of `bytes` over the tensor-parallel group.
Growth exchange_ns(double bytes, const Machine& machine) {
  const double share = static_cast<double>(machine.tp - 1) / machine.tp;
  return {1e9 * bytes * share / machine.gpu.peer_bytes_per_second, 0};
}

// Bytes of one token in one layer, undivided.
struct TokenBytes {
  double activation = 0;
  double weight_only = 0;
  double stash = 0;
};

TokenBytes transformer_token_bytes(const TransformerShape& shape, double attended, bool flash) {
  const auto h = static_cast<double>(shape.hidden);
  const auto f = static_cast<double>(shape.ffn);
  const double q = query_size(shape);
  const double kv = key_size(shape);
  const double mlps = shape.experts == 0 ? 1 : shape.experts_per_token;
  // With experts, what enters the router and a copy for each expert that a token goes to.
  const double mlp_inputs = shape.experts == 0 ? h : h + mlps * h;
  const double inner = mlps * f * (shape.gated ? 2 : 1);  // before the activation function
  const double norm_inputs = 2 * h;
  const double masks = shape.dropout ? 2 * h : 0;  // one byte each
  double scores = 0;
  if (!flash) scores = shape.heads * attended * (shape.dropout ? 2 * kBf16 + 1 : kBf16);

  TokenBytes bytes;
  bytes.weight_only = kBf16 * (h + mlp_inputs + mlps * f);
  bytes.activation =
      bytes.weight_only + kBf16 * (norm_inputs + q + 2 * kv + q + inner) + masks + scores;
  const double matrix_inputs = h + q + mlp_inputs + mlps * f;
  const double output_gradients = (q + 2 * kv) + h + inner + mlps * h;
  bytes.stash = kBf16 * (matrix_inputs + output_gradients);
  return bytes;
}

LayerCost transformer_layer(const TransformerShape& shape, LayerKind kind, int layer,
                            double sequences, double tokens, const Machine& machine) {
  LayerCost cost;
  cost.kind = kind;
  cost.name = (kind == LayerKind::kVision ? "vision " : "layer ") + std::to_string(layer);
  cost.parameters = static_cast<double>(layer_parameters(shape)) / machine.tp;
  cost.time_ns =
      in_ns(layer_flops(shape, sequences, tokens, layer, machine.flash_attention), machine);
  const double all = sequences * tokens;
  // Attention and MLP each gather what they read and scatter what they write.
  const double hidden_bytes = kBf16 * all * static_cast<double>(shape.hidden);
  cost.time_ns.forward += exchange_ns(4 * hidden_bytes, machine);
  cost.time_ns.input_gradient += exchange_ns(4 * hidden_bytes, machine);
  // What was read is kept as a share only, and gathered again.
  cost.time_ns.weight_gradient += exchange_ns(2 * hidden_bytes, machine);
  const TokenBytes token = transformer_token_bytes(shape, attended_tokens(shape, layer, tokens),
                                                   machine.flash_attention);
  cost.activation_bytes = token.activation * all / machine.tp;
  cost.weight_only_bytes = token.weight_only * all / machine.tp;
  cost.stash_bytes = token.stash * all / machine.tp;
  cost.output_bytes = hidden_bytes / machine.tp;
  return cost;
}

LayerCost embedding(const ModelShape& model, double tokens, const Machine& machine) {
  const auto h = static_cast<double>(model.language.hidden);
  LayerCost cost;
  cost.kind = LayerKind::kEmbedding;
  cost.name = "embedding";
  cost.parameters = static_cast<double>(embedding_parameters(model)) / machine.tp;
  // Rows are copied: bound by memory. Gradients are added to in fp32.
  const double ns_per_byte = 1e9 / (machine.gpu.memory_bytes_per_second * machine.tp);
  cost.time_ns.forward = {2 * kBf16 * tokens * h * ns_per_byte, 0};
  cost.time_ns.weight_gradient = {(kBf16 + 2 * kFp32) * tokens * h * ns_per_byte, 0};
  cost.time_ns.forward += exchange_ns(kBf16 * tokens * h, machine);
  cost.time_ns.weight_gradient += exchange_ns(kBf16 * tokens * h, machine);
  cost.activation_bytes = (model.language.dropout ? tokens * h : 0) / machine.tp;
  cost.stash_bytes = kBf16 * tokens * h / machine.tp;
  cost.output_bytes = kBf16 * tokens * h / machine.tp;
  return cost;
}

LayerCost head(const ModelShape& model, double tokens, const Machine& machine) {
  const auto h = static_cast<double>(model.language.hidden);
  const auto v = static_cast<double>(model.vocabulary);
  LayerCost cost;
  cost.kind = LayerKind::kHead;
  cost.name = "head";
  cost.parameters = static_cast<double>(head_parameters(model)) / machine.tp;
  cost.time_ns = in_ns(matrix_flops(v * h, tokens), machine);
  cost.time_ns.forward += exchange_ns(kBf16 * tokens * h, machine);
  cost.time_ns.input_gradient += exchange_ns(kBf16 * tokens * h, machine);
  cost.time_ns.weight_gradient += exchange_ns(kBf16 * tokens * h, machine);
  // What the norm and the matrix read, and the logits in fp32.
  cost.activation_bytes = tokens * (2 * kBf16 * h + kFp32 * v) / machine.tp;
  cost.weight_only_bytes = tokens * kBf16 * h / machine.tp;
  cost.stash_bytes = tokens * kBf16 * (h + v) / machine.tp;
  return cost;
}

LayerCost patch_embedding(const VisionShape& vision, double patches, const Machine& machine) {
  const auto elements = static_cast<double>(patch_embedding_parameters(vision));
  const auto h = static_cast<double>(vision.transformer.hidden);
  LayerCost cost;
  cost.kind = LayerKind::kPatchEmbedding;
  cost.name = "patches";
  cost.parameters = elements / machine.tp;
  cost.time_ns = in_ns(matrix_flops(elements, patches), machine);
  cost.activation_bytes = kBf16 * patches * (elements / h) / machine.tp;
  cost.weight_only_bytes = cost.activation_bytes;
  cost.stash_bytes = cost.activation_bytes + kBf16 * patches * h / machine.tp;
  cost.output_bytes = kBf16 * patches * h / machine.tp;
  return cost;
}

LayerCost projector(const ModelShape& model, double patches, const Machine& machine) {
  const VisionShape& vision = *model.vision;
  const double merged =
      static_cast<double>(vision.transformer.hidden) * vision.merge * vision.merge;
  const double tokens = patches / (vision.merge * vision.merge);
  const auto h = static_cast<double>(model.language.hidden);
  LayerCost cost;
  cost.kind = LayerKind::kProjector;
  cost.name = "projector";
  cost.parameters =
      static_cast<double>(projector_parameters(vision, model.language.hidden)) / machine.tp;
  cost.time_ns = in_ns(matrix_flops(merged * merged + merged * h, tokens), machine);
  cost.time_ns.forward += exchange_ns(kBf16 * tokens * (merged + h), machine);
  cost.time_ns.input_gradient += exchange_ns(kBf16 * tokens * (merged + h), machine);
  cost.time_ns.weight_gradient += exchange_ns(kBf16 * tokens * merged, machine);
  // What the norm, both matrices and the activation function between them read.
  cost.activation_bytes = kBf16 * tokens * 4 * merged / machine.tp;
  cost.weight_only_bytes = kBf16 * tokens * 2 * merged / machine.tp;
  cost.stash_bytes = kBf16 * tokens * (3 * merged + h) / machine.tp;
  cost.output_bytes = kBf16 * tokens * h / machine.tp;
  return cost;
}

Result<void> check_images(const ModelShape& model, const MicrobatchShape& batch) {
  if (batch.images == 0) return {};
  if (!model.vision) {
    return Error{std::string(model.name) + " takes no images; found " +
                 std::to_string(batch.images) + " per sequence"};
  }
  const std::int64_t merged = std::int64_t{model.vision->merge} * model.vision->merge;
  if (batch.patches < merged || batch.patches % merged != 0) {
    return Error{"found images of " + std::to_string(batch.patches) +
                 " patches; expected a multiple of " + std::to_string(merged) +
                 ", which the projector makes one token of"};
  }
  const std::int64_t tokens = batch.images * (batch.patches / merged);
  if (tokens > batch.tokens) {
    return Error{"the images of a sequence are " + std::to_string(tokens) +
                 " tokens; expected at most its length, " + std::to_string(batch.tokens)};
  }
  return {};
}

}  // namespace

LayerWork layer_flops(const TransformerShape& shape, double sequences, double tokens, int layer,
                      bool flash_attention) {
  LayerWork work =
      matrix_flops(static_cast<double>(active_matrix_elements(shape)), sequences * tokens);
  // Scores and their sum over values: two products of 2 FLOPs per pair and element of a query.
  const bool window = has_window(shape, layer);
  const double attended = attended_tokens(shape, layer, tokens) * (shape.causal ? 0.5 : 1);
  const double product = 2 * sequences * tokens * attended * query_size(shape);
  // Four products in the backward, and a fifth where the scores were not kept.
  const auto add = [window](Growth& growth, double flops) {
    (window ? growth.linear : growth.quadratic) += flops;
  };
  add(work.forward, 2 * product);
  add(work.input_gradient, (flash_attention ? 5 : 4) * product);
  return work;
}

Result<std::vector<LayerCost>> model_layers(const ModelShape& model, const MicrobatchShape& batch,
                                            const Machine& machine) {
  if (Result<void> fits = check_images(model, batch); !fits.ok()) return fits.error();
  std::vector<LayerCost> layers;
  if (batch.images > 0) {
    const double images = static_cast<double>(batch.sequences) * batch.images;
    const auto patches = static_cast<double>(batch.patches);
    layers.push_back(patch_embedding(*model.vision, images * patches, machine));
    for (int layer = 0; layer < model.vision->transformer.layers; ++layer) {
      layers.push_back(transformer_layer(model.vision->transformer, LayerKind::kVision, layer,
                                         images, patches, machine));
    }
    layers.push_back(projector(model, images * patches, machine));
  }
  const auto tokens = static_cast<double>(batch.tokens);
  layers.push_back(embedding(model, batch.sequences * tokens, machine));
  for (int layer = 0; layer < model.language.layers; ++layer) {
    layers.push_back(transformer_layer(model.language, LayerKind::kTransformer, layer,
                                       batch.sequences, tokens, machine));
  }
  layers.push_back(head(model, batch.sequences * tokens, machine));
  return layers;
}

}  // namespace rrfp
