// The shape of a model, as its published configuration gives it, and what
// follows from the shape alone: parameters.
//
// Thread safety: pure functions and constants.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"

namespace rrfp {

/// A stack of equal transformer layers.
struct TransformerShape {
  int layers = 0;
  std::int64_t hidden = 0;
  int heads = 0;
  int kv_heads = 0;            ///< grouped-query attention; as many as heads: plain attention
  std::int64_t head_size = 0;  ///< most often hidden / heads
  std::int64_t ffn = 0;        ///< inner size of the MLP, or of one expert
  bool gated = true;           ///< three matrices (SwiGLU) instead of two
  int experts = 0;             ///< 0: one dense MLP
  int experts_per_token = 0;
  bool causal = true;             ///< a token attends to those before it: half of all pairs
  std::int64_t window = 0;        ///< tokens that attend to each other; 0: the whole sequence
  int full_attention_layers = 0;  ///< where there is a window: layers without one
  bool qkv_bias = false;
  bool linear_bias = false;  ///< of the other matrices
  bool norm_bias = false;    ///< LayerNorm instead of RMSNorm
  bool query_key_norm = false;
  bool dropout = false;  ///< after attention and MLP: keeps a mask
};

/// An image encoder and the projector into the language model. An image is cut
/// into patches; `merge` x `merge` of them become one token.
struct VisionShape {
  TransformerShape transformer;
  int patch = 0;  ///< pixels along a side
  int channels = 3;
  int frames = 1;  ///< that one patch spans
  int merge = 1;
};

struct ModelShape {
  std::string_view name;  ///< as the command line knows it
  std::string_view title;
  TransformerShape language;
  std::int64_t vocabulary = 0;
  std::int64_t learned_positions = 0;  ///< 0: rotary
  bool tied = false;                   ///< embedding and head are one matrix
  std::optional<VisionShape> vision;
  std::string_view source;  ///< of the numbers above
};

/// Of one layer.
std::int64_t layer_parameters(const TransformerShape& shape);
/// Those of them that one token meets: all but the experts it does not go to.
std::int64_t active_layer_parameters(const TransformerShape& shape);
/// Elements of the matrices that one token is multiplied with in a layer:
/// each costs 2 FLOPs forward, 2 for the input and 2 for the weight gradient.
std::int64_t active_matrix_elements(const TransformerShape& shape);

std::int64_t embedding_parameters(const ModelShape& model);
/// The final norm and the matrix into the vocabulary. A tied matrix counts
/// here as well, since with pipeline stages both ends hold a copy.
std::int64_t head_parameters(const ModelShape& model);
std::int64_t patch_embedding_parameters(const VisionShape& vision);
/// From merged patches to the hidden size of the language model.
std::int64_t projector_parameters(const VisionShape& vision, std::int64_t language_hidden);

/// Of the language model, and of encoder and projector; a tied matrix once.
std::int64_t language_parameters(const ModelShape& model);
std::int64_t vision_parameters(const ModelShape& model);

/// Public models, in the order in which they are listed.
std::span<const ModelShape> named_models();

/// The error lists the names, nearest first.
Result<ModelShape> find_model(std::string_view name);

}  // namespace rrfp
