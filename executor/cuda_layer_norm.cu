// Layer normalisation: a block has a row, whose mean and deviation its threads
// find together; the gradients of gain and bias are sums down the columns.
#include "executor/cuda_block_sums.h"
#include "executor/cuda_model_launchers.h"

namespace rrfp {

namespace {

constexpr float kEpsilon = 1e-5F;  // added to the variance

__global__ void layer_norm(int width, const float* input, const float* gain, const float* bias,
                           NormStash stash, float* output) {
  const std::size_t from = std::size_t{blockIdx.x} * width;
  float mine = 0;
  for (int i = threadIdx.x; i < width; i += kRowThreads) mine += input[from + i];
  const float mean = combine_row(mine, Sum()) / width;
  mine = 0;
  for (int i = threadIdx.x; i < width; i += kRowThreads) {
    const float off = input[from + i] - mean;
    mine += off * off;
  }
  const float inverse = 1 / sqrtf(combine_row(mine, Sum()) / width + kEpsilon);
  if (threadIdx.x == 0) stash.inverse_deviation[blockIdx.x] = inverse;
  for (int i = threadIdx.x; i < width; i += kRowThreads) {
    const float normalized = (input[from + i] - mean) * inverse;
    stash.normalized[from + i] = normalized;
    output[from + i] = normalized * gain[i] + bias[i];
  }
}

// With n the normalised row and g the gradient times the gain:
// dx = (g - mean(g) - n mean(g n)) / deviation.
__global__ void layer_norm_gradient(int width, const float* output_gradient, const float* gain,
                                    NormStash stash, float* gradient) {
  const std::size_t from = std::size_t{blockIdx.x} * width;
  float sum = 0;
  float along = 0;
  for (int i = threadIdx.x; i < width; i += kRowThreads) {
    const float scaled = output_gradient[from + i] * gain[i];
    sum += scaled;
    along += scaled * stash.normalized[from + i];
  }
  const float mean = combine_row(sum, Sum()) / width;
  const float mean_along = combine_row(along, Sum()) / width;
  const float inverse = stash.inverse_deviation[blockIdx.x];
  for (int i = threadIdx.x; i < width; i += kRowThreads) {
    const float scaled = output_gradient[from + i] * gain[i];
    gradient[from + i] += (scaled - mean - stash.normalized[from + i] * mean_along) * inverse;
  }
}

__global__ void layer_norm_weight_gradient(TensorShape shape, const float* output_gradient,
                                           const float* normalized, float* gain_gradient,
                                           float* bias_gradient) {
  const int column = static_cast<int>(blockIdx.x * kSumColumns + threadIdx.x);
  const bool there = column < shape.columns;
  const auto at = [&](int row) { return std::size_t(row) * shape.columns + column; };
  const float gain = sum_over_rows(there ? shape.rows : 0, [&](int row) {
    return output_gradient[at(row)] * normalized[at(row)];
  });
  const float bias =
      sum_over_rows(there ? shape.rows : 0, [&](int row) { return output_gradient[at(row)]; });
  if (!there || threadIdx.y != 0) return;
  gain_gradient[column] = gain;
  bias_gradient[column] = bias;
}

}  // namespace

cudaError_t launch_layer_norm(TensorShape shape, const float* input, const float* gain,
                              const float* bias, NormStash stash, float* output,
                              cudaStream_t stream) {
  layer_norm<<<shape.rows, kRowThreads, 0, stream>>>(shape.columns, input, gain, bias, stash,
                                                     output);
  return cudaGetLastError();
}

cudaError_t launch_layer_norm_gradient(TensorShape shape, const float* output_gradient,
                                       const float* gain, NormStash stash, float* gradient,
                                       cudaStream_t stream) {
  layer_norm_gradient<<<shape.rows, kRowThreads, 0, stream>>>(shape.columns, output_gradient, gain,
                                                              stash, gradient);
  return cudaGetLastError();
}

cudaError_t launch_layer_norm_weight_gradient(TensorShape shape, const float* output_gradient,
                                              const float* normalized, float* gain_gradient,
                                              float* bias_gradient, cudaStream_t stream) {
  const unsigned blocks = blocks_of(static_cast<std::size_t>(shape.columns), kSumColumns);
  layer_norm_weight_gradient<<<blocks, dim3(kSumColumns, kSumThreads), 0, stream>>>(
      shape, output_gradient, normalized, gain_gradient, bias_gradient);
  return cudaGetLastError();
}

}  // namespace rrfp
