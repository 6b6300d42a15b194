// The two ends of the model on a device: from bytes to the stream, see
// model_embedding.h, and from the stream to the loss, see model_loss.h.
//
// Thread safety: immutable; they enqueue.
#pragma once

#include <cstdint>

#include "executor/cuda_model_layer_norm.h"

namespace rrfp {

class CudaEmbedding {
 public:
  /// What one microbatch keeps. Its bytes stay with the caller.
  struct Stash {
    CudaMatrix output_gradient;  // I to W
  };

  explicit CudaEmbedding(CudaParameterCursor& weights)
      : token_(weights.next()), position_(weights.next()) {}

  static Stash lay_out(const ModelSpec& spec, int rows, CudaStashCarvers& carvers) {
    return {carvers.until_weight.matrix(rows, spec.width)};
  }

  /// To the scratch's `stream`.
  void forward(const CudaPass& pass, const std::uint8_t* tokens) const;
  /// From the scratch's `gradient`.
  void input_gradient(const CudaPass& pass, const Stash& stash) const;
  void weight_gradient(CudaCompute& compute, const std::uint8_t* tokens, const Stash& stash) const;

 private:
  CudaParameter token_;
  CudaParameter position_;
};

class CudaHead {
 public:
  /// What one microbatch keeps. Its targets stay with the caller.
  struct Stash {
    CudaLayerNorm::Stash norm;
    CudaMatrix input;    // F to W: behind the norm
    CudaMatrix chances;  // F to W: of every byte, then the gradient of the scores
  };

  explicit CudaHead(CudaParameterCursor& weights) : norm_(weights), out_(weights.next()) {}

  static Stash lay_out(const ModelSpec& spec, int targets, CudaStashCarvers& carvers);

  /// From the last rows of the scratch's `stream`; the loss goes to pinned
  /// memory.
  void forward(const CudaPass& pass, const std::uint8_t* targets, const Stash& stash,
               double* loss) const;
  /// Of `scale` times the loss, to the scratch's `gradient`.
  void input_gradient(const CudaPass& pass, const std::uint8_t* targets, float scale,
                      const Stash& stash) const;
  void weight_gradient(CudaCompute& compute, const Stash& stash) const;

 private:
  CudaLayerNorm norm_;
  CudaParameter out_;
};

}  // namespace rrfp
