// Layer normalisation on a device, see model_layer_norm.h.
//
// Thread safety: immutable; it enqueues.
#pragma once

#include "executor/cuda_parameters.h"
#include "executor/cuda_pass.h"

namespace rrfp {

class CudaLayerNorm {
 public:
  /// What one microbatch keeps.
  struct Stash {
    NormStash forward;               // F to I
    float* gain_gradient = nullptr;  // I to W
    float* bias_gradient = nullptr;  // I to W
  };

  explicit CudaLayerNorm(CudaParameterCursor& weights)
      : gain_(weights.next()), bias_(weights.next()) {}

  static Stash lay_out(const ModelSpec& spec, int rows, CudaStashCarvers& carvers);

  void forward(CudaCompute& compute, const CudaMatrix& input, const Stash& stash,
               const CudaMatrix& output) const;
  /// Adds the gradient of the input to `gradient`.
  void input_gradient(CudaCompute& compute, const CudaMatrix& output_gradient, const Stash& stash,
                      const CudaMatrix& gradient) const;
  void weight_gradient(CudaCompute& compute, const Stash& stash) const;

 private:
  CudaParameter gain_;
  CudaParameter bias_;
};

}  // namespace rrfp
