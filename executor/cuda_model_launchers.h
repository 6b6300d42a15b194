// The kernels of the training model, as functions that host code calls; see
// cuda_launchers.h, whose words hold here as well.
//
// Tensors are of floats, dense and by row: a row is a position of a sequence,
// or a row of weights. Matrix products are not among these (see cuda_blas.h).
//
// Invariant: sums are made in an order that the shape alone decides, without
// atomics: the same inputs give the same bits, whatever ran before or beside.
//
// Thread safety: any; a stream takes work in the order of the calls.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace rrfp {

struct TensorShape {
  int rows = 0;
  int columns = 0;

  std::size_t size() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  }
};

// --- cuda_layer_norm.cu

/// What a layer normalisation keeps of its forward pass.
struct NormStash {
  float* normalized = nullptr;         ///< rows x columns
  float* inverse_deviation = nullptr;  ///< rows
};
/// output = gain (input - mean) / deviation + bias, row by row.
cudaError_t launch_layer_norm(TensorShape shape, const float* input, const float* gain,
                              const float* bias, NormStash stash, float* output,
                              cudaStream_t stream);
/// Adds the gradient of the input to `gradient`.
cudaError_t launch_layer_norm_gradient(TensorShape shape, const float* output_gradient,
                                       const float* gain, NormStash stash, float* gradient,
                                       cudaStream_t stream);
/// The gradients of gain and bias: sums over all rows.
cudaError_t launch_layer_norm_weight_gradient(TensorShape shape, const float* output_gradient,
                                              const float* normalized, float* gain_gradient,
                                              float* bias_gradient, cudaStream_t stream);

// --- cuda_softmax.cu

/// `scores`: `heads` matrices of rows x rows. Row i of each becomes the softmax
/// of its first i + 1 numbers where `causal`, else of all; the others become 0.
cudaError_t launch_softmax(int heads, int rows, bool causal, float* scores, cudaStream_t stream);
/// From the gradient of the weights to `scale` times that of the scores, in
/// place: ds = scale w (dw - sum(dw w)).
cudaError_t launch_softmax_gradient(int heads, int rows, float scale, const float* weights,
                                    float* gradient, cudaStream_t stream);

// --- cuda_activation.cu

/// hidden += bias, row by row; active = gelu(hidden).
cudaError_t launch_activation(TensorShape shape, const float* bias, float* hidden, float* active,
                              cudaStream_t stream);
/// gradient *= the slope of gelu at `hidden`.
cudaError_t launch_activation_gradient(std::size_t count, const float* hidden, float* gradient,
                                       cudaStream_t stream);

// --- cuda_sums.cu

/// to += bias, row by row.
cudaError_t launch_add_bias(TensorShape shape, const float* bias, float* to, cudaStream_t stream);
/// to += part + bias, row by row.
cudaError_t launch_add_with_bias(TensorShape shape, const float* part, const float* bias, float* to,
                                 cudaStream_t stream);
/// sum += all rows of `of`.
cudaError_t launch_add_rows(TensorShape shape, const float* of, float* sum, cudaStream_t stream);
/// to += from.
cudaError_t launch_add(std::size_t count, const float* from, float* to, cudaStream_t stream);

// --- cuda_embedding.cu

/// Row i becomes token_rows[tokens[i]] + position_rows[i].
cudaError_t launch_embedding(TensorShape shape, const std::uint8_t* tokens, const float* token_rows,
                             const float* position_rows, float* output, cudaStream_t stream);
/// Adds to the gradients of both tables; rows of the same token in their order.
cudaError_t launch_embedding_gradient(TensorShape shape, const std::uint8_t* tokens,
                                      const float* output_gradient, float* token_gradient,
                                      float* position_gradient, cudaStream_t stream);

// --- cuda_cross_entropy.cu

/// Rows of scores become chances; losses[i] = -log(chance of targets[i]).
cudaError_t launch_cross_entropy(TensorShape shape, const std::uint8_t* targets, float* scores,
                                 float* losses, cudaStream_t stream);
/// `sum`, in pinned host memory, becomes the sum of the losses.
cudaError_t launch_sum_losses(int count, const float* losses, double* sum, cudaStream_t stream);
/// chances = scale (chances - 1 at the target): the gradient of the scores.
cudaError_t launch_cross_entropy_gradient(TensorShape shape, const std::uint8_t* targets,
                                          float scale, float* chances, cudaStream_t stream);

// --- cuda_momentum.cu

struct MomentumStep {
  float learning_rate = 0;
  float momentum = 0;
};
/// velocity = momentum velocity + gradient; value -= learning_rate velocity;
/// gradient = 0.
cudaError_t launch_momentum_step(std::size_t count, MomentumStep step, float* value,
                                 float* gradient, float* velocity, cudaStream_t stream);

}  // namespace rrfp
