// From bytes to rows, and back to the gradients of the two tables. Several rows
// may be of one token: its block adds them in their order, so that no atomics
// are needed and the sum is the same each time.
#include "executor/cuda_block_sums.h"
#include "executor/cuda_model_launchers.h"

namespace rrfp {

namespace {

constexpr int kTokens = 256;  // every byte is one

__global__ void embedding(int width, const std::uint8_t* tokens, const float* token_rows,
                          const float* position_rows, float* output) {
  const std::size_t row = std::size_t{blockIdx.x} * width;
  const std::size_t token = std::size_t{tokens[blockIdx.x]} * width;
  for (int i = threadIdx.x; i < width; i += kRowThreads) {
    output[row + i] = token_rows[token + i] + position_rows[row + i];
  }
}

__global__ void token_gradient(TensorShape shape, const std::uint8_t* tokens,
                               const float* output_gradient, float* gradient) {
  float* const of_token = gradient + std::size_t{blockIdx.x} * shape.columns;
  for (int row = 0; row < shape.rows; ++row) {
    if (tokens[row] != blockIdx.x) continue;
    const float* const from = output_gradient + std::size_t(row) * shape.columns;
    for (int i = threadIdx.x; i < shape.columns; i += kRowThreads) of_token[i] += from[i];
  }
}

}  // namespace

cudaError_t launch_embedding(TensorShape shape, const std::uint8_t* tokens, const float* token_rows,
                             const float* position_rows, float* output, cudaStream_t stream) {
  embedding<<<shape.rows, kRowThreads, 0, stream>>>(shape.columns, tokens, token_rows,
                                                    position_rows, output);
  return cudaGetLastError();
}

cudaError_t launch_embedding_gradient(TensorShape shape, const std::uint8_t* tokens,
                                      const float* output_gradient, float* token_gradients,
                                      float* position_gradient, cudaStream_t stream) {
  token_gradient<<<kTokens, kRowThreads, 0, stream>>>(shape, tokens, output_gradient,
                                                      token_gradients);
  if (const cudaError_t code = cudaGetLastError(); code != cudaSuccess) return code;
  return launch_add(shape.size(), output_gradient, position_gradient, stream);
}

}  // namespace rrfp
