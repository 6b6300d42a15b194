// Multi-head self-attention on a device, see model_attention.h; one lane's.
//
// Thread safety: immutable; it enqueues.
#pragma once

#include "executor/cuda_parameters.h"
#include "executor/cuda_pass.h"

namespace rrfp {

class CudaAttention {
 public:
  /// What one microbatch keeps.
  struct Stash {
    CudaMatrix input;               // F to W: whoever calls forward() fills it
    CudaMatrix projected;           // F to I: queries, keys, values side by side
    float* weights = nullptr;       // F to I: heads matrices of rows x rows
    CudaMatrix context;             // F to W: what the heads gathered
    CudaMatrix output_gradient;     // I to W
    CudaMatrix projected_gradient;  // I to W
  };

  CudaAttention(const ModelSpec& spec, bool causal, CudaParameterCursor& weights);

  static Stash lay_out(const ModelSpec& spec, int rows, CudaStashCarvers& carvers);

  /// Adds to `stream`.
  void forward(const CudaPass& pass, const Stash& stash, const CudaMatrix& stream) const;
  /// The gradient of the input goes to the scratch's `part`.
  void input_gradient(const CudaPass& pass, const CudaMatrix& output_gradient,
                      const Stash& stash) const;
  void weight_gradient(CudaCompute& compute, const Stash& stash) const;

 private:
  CudaMatrices heads(const CudaMatrix& of, int part) const;
  CudaMatrices squares(float* of, int rows) const;

  bool causal_;
  int head_width_;
  int lane_heads_;
  int lane_width_;
  CudaParameter in_;
  CudaParameter in_bias_;
  CudaParameter out_;
  CudaParameter out_bias_;
};

}  // namespace rrfp
