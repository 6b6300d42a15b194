#include "executor/model_block.h"

namespace rrfp {

Block::Block(const ModelSpec& spec, int block, const HeldLanes& held, bool causal)
    : attention_norm_("block " + std::to_string(block) + " attention norm", spec.width),
      attention_(spec, block, held, causal),
      mlp_norm_("block " + std::to_string(block) + " mlp norm", spec.width),
      mlp_(spec, block, held) {}

Matrix Block::forward(const Matrix& input, LaneSum& lanes, Stash& stash) const {
  Matrix stream = input;
  stream += attention_.forward(attention_norm_.forward(stream, stash.attention_norm), lanes,
                               stash.attention);
  stream += mlp_.forward(mlp_norm_.forward(stream, stash.mlp_norm), lanes, stash.mlp);
  return stream;
}

Matrix Block::input_gradient(const Matrix& output_gradient, LaneSum& lanes, Stash& stash) const {
  Matrix gradient = output_gradient;
  gradient +=
      mlp_norm_.input_gradient(mlp_.input_gradient(gradient, lanes, stash.mlp), stash.mlp_norm);
  gradient += attention_norm_.input_gradient(
      attention_.input_gradient(gradient, lanes, stash.attention), stash.attention_norm);
  return gradient;
}

void Block::weight_gradient(Stash& stash) {
  attention_norm_.weight_gradient(stash.attention_norm);
  attention_.weight_gradient(stash.attention);
  mlp_norm_.weight_gradient(stash.mlp_norm);
  mlp_.weight_gradient(stash.mlp);
}

std::int64_t Block::forward_bytes(std::int64_t rows) const {
  return attention_norm_.forward_bytes(rows) + attention_.forward_bytes(rows) +
         mlp_norm_.forward_bytes(rows) + mlp_.forward_bytes(rows);
}

std::int64_t Block::weight_bytes(std::int64_t rows) const {
  return attention_norm_.weight_bytes() + attention_.weight_bytes(rows) + mlp_norm_.weight_bytes() +
         mlp_.weight_bytes(rows);
}

void Block::list(ParameterList& parameters) {
  attention_norm_.list(parameters);
  attention_.list(parameters);
  mlp_norm_.list(parameters);
  mlp_.list(parameters);
}

}  // namespace rrfp
