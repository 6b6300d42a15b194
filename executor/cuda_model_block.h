// One block of the transformer on a device, see model_block.h.
//
// Thread safety: immutable; it enqueues.
#pragma once

#include "executor/cuda_model_attention.h"
#include "executor/cuda_model_layer_norm.h"
#include "executor/cuda_model_mlp.h"

namespace rrfp {

class CudaBlock {
 public:
  /// What one microbatch keeps.
  struct Stash {
    CudaLayerNorm::Stash attention_norm;
    CudaAttention::Stash attention;
    CudaLayerNorm::Stash mlp_norm;
    CudaMlp::Stash mlp;
  };

  CudaBlock(const ModelSpec& spec, bool causal, CudaParameterCursor& weights);

  static Stash lay_out(const ModelSpec& spec, int rows, CudaStashCarvers& carvers);

  /// Through the scratch's `stream`, in place.
  void forward(const CudaPass& pass, const Stash& stash) const;
  /// Through the scratch's `gradient`, in place.
  void input_gradient(const CudaPass& pass, const Stash& stash) const;
  void weight_gradient(CudaCompute& compute, const Stash& stash) const;

 private:
  CudaLayerNorm attention_norm_;
  CudaAttention attention_;
  CudaLayerNorm mlp_norm_;
  CudaMlp mlp_;
};

}  // namespace rrfp
