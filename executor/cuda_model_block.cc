#include "executor/cuda_model_block.h"

namespace rrfp {

CudaBlock::CudaBlock(const ModelSpec& spec, bool causal, CudaParameterCursor& weights)
    : attention_norm_(weights),
      attention_(spec, causal, weights),
      mlp_norm_(weights),
      mlp_(weights) {}

CudaBlock::Stash CudaBlock::lay_out(const ModelSpec& spec, int rows, CudaStashCarvers& carvers) {
  Stash stash;
  stash.attention_norm = CudaLayerNorm::lay_out(spec, rows, carvers);
  stash.attention = CudaAttention::lay_out(spec, rows, carvers);
  stash.mlp_norm = CudaLayerNorm::lay_out(spec, rows, carvers);
  stash.mlp = CudaMlp::lay_out(spec, rows, carvers);
  return stash;
}

void CudaBlock::forward(const CudaPass& pass, const Stash& stash) const {
  const CudaMatrix& stream = pass.scratch.stream;
  attention_norm_.forward(pass.compute, stream, stash.attention_norm, stash.attention.input);
  attention_.forward(pass, stash.attention, stream);
  mlp_norm_.forward(pass.compute, stream, stash.mlp_norm, stash.mlp.input);
  mlp_.forward(pass, stash.mlp, stream);
}

void CudaBlock::input_gradient(const CudaPass& pass, const Stash& stash) const {
  const CudaMatrix& gradient = pass.scratch.gradient;
  mlp_.input_gradient(pass, gradient, stash.mlp);
  mlp_norm_.input_gradient(pass.compute, pass.scratch.part, stash.mlp_norm, gradient);
  attention_.input_gradient(pass, gradient, stash.attention);
  attention_norm_.input_gradient(pass.compute, pass.scratch.part, stash.attention_norm, gradient);
}

void CudaBlock::weight_gradient(CudaCompute& compute, const Stash& stash) const {
  attention_norm_.weight_gradient(compute, stash.attention_norm);
  attention_.weight_gradient(compute, stash.attention);
  mlp_norm_.weight_gradient(compute, stash.mlp_norm);
  mlp_.weight_gradient(compute, stash.mlp);
}

}  // namespace rrfp
