// The two-layer network of a block on a device, see model_mlp.h; one lane's.
//
// Thread safety: immutable; it enqueues.
#pragma once

#include "executor/cuda_parameters.h"
#include "executor/cuda_pass.h"

namespace rrfp {

class CudaMlp {
 public:
  /// What one microbatch keeps.
  struct Stash {
    CudaMatrix input;            // F to W: whoever calls forward() fills it
    CudaMatrix hidden;           // F to I: before the activation function
    CudaMatrix active;           // F to W: after it
    CudaMatrix output_gradient;  // I to W
    CudaMatrix hidden_gradient;  // I to W
  };

  explicit CudaMlp(CudaParameterCursor& weights)
      : in_(weights.next()),
        in_bias_(weights.next()),
        out_(weights.next()),
        out_bias_(weights.next()) {}

  static Stash lay_out(const ModelSpec& spec, int rows, CudaStashCarvers& carvers);

  /// Adds to `stream`.
  void forward(const CudaPass& pass, const Stash& stash, const CudaMatrix& stream) const;
  /// The gradient of the input goes to the scratch's `part`.
  void input_gradient(const CudaPass& pass, const CudaMatrix& output_gradient,
                      const Stash& stash) const;
  void weight_gradient(CudaCompute& compute, const Stash& stash) const;

 private:
  CudaParameter in_;
  CudaParameter in_bias_;
  CudaParameter out_;
  CudaParameter out_bias_;
};

}  // namespace rrfp
