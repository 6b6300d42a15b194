// One block of the transformer: attention and MLP, each behind its
// normalisation and added to what passes by.
//
// Thread safety: const methods may run at the same time.
#pragma once

#include "executor/model_attention.h"
#include "executor/model_layer_norm.h"
#include "executor/model_mlp.h"

namespace rrfp {

class Block {
 public:
  struct Stash {
    LayerNorm::Stash attention_norm;
    Attention::Stash attention;
    LayerNorm::Stash mlp_norm;
    Mlp::Stash mlp;

    std::int64_t bytes() const {
      return attention_norm.bytes() + attention.bytes() + mlp_norm.bytes() + mlp.bytes();
    }
  };

  Block(const ModelSpec& spec, int block, const HeldLanes& held, bool causal);

  Matrix forward(const Matrix& input, LaneSum& lanes, Stash& stash) const;
  Matrix input_gradient(const Matrix& output_gradient, LaneSum& lanes, Stash& stash) const;
  void weight_gradient(Stash& stash);

  std::int64_t forward_bytes(std::int64_t rows) const;
  std::int64_t weight_bytes(std::int64_t rows) const;
  void list(ParameterList& parameters);

 private:
  LayerNorm attention_norm_;
  Attention attention_;
  LayerNorm mlp_norm_;
  Mlp mlp_;
};

}  // namespace rrfp
