// What is added up: biases to rows, rows to the gradients of biases, tensors to
// tensors.
#include "executor/cuda_block_sums.h"
#include "executor/cuda_model_launchers.h"

namespace rrfp {

namespace {

constexpr int kThreads = 256;

__global__ void add_bias(TensorShape shape, const float* bias, float* to) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < std::size_t(shape.rows) * shape.columns) to[i] += bias[i % shape.columns];
}

__global__ void add_with_bias(TensorShape shape, const float* part, const float* bias, float* to) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < std::size_t(shape.rows) * shape.columns) to[i] += part[i] + bias[i % shape.columns];
}

__global__ void add_rows(TensorShape shape, const float* of, float* sum) {
  const int column = static_cast<int>(blockIdx.x * kSumColumns + threadIdx.x);
  const bool there = column < shape.columns;
  const float rows = sum_over_rows(there ? shape.rows : 0, [&](int row) {
    return of[std::size_t(row) * shape.columns + column];
  });
  if (there && threadIdx.y == 0) sum[column] += rows;
}

__global__ void add(std::size_t count, const float* from, float* to) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) to[i] += from[i];
}

}  // namespace

cudaError_t launch_add_bias(TensorShape shape, const float* bias, float* to, cudaStream_t stream) {
  add_bias<<<blocks_of(shape.size(), kThreads), kThreads, 0, stream>>>(shape, bias, to);
  return cudaGetLastError();
}

cudaError_t launch_add_with_bias(TensorShape shape, const float* part, const float* bias, float* to,
                                 cudaStream_t stream) {
  add_with_bias<<<blocks_of(shape.size(), kThreads), kThreads, 0, stream>>>(shape, part, bias, to);
  return cudaGetLastError();
}

cudaError_t launch_add_rows(TensorShape shape, const float* of, float* sum, cudaStream_t stream) {
  const unsigned blocks = blocks_of(static_cast<std::size_t>(shape.columns), kSumColumns);
  add_rows<<<blocks, dim3(kSumColumns, kSumThreads), 0, stream>>>(shape, of, sum);
  return cudaGetLastError();
}

cudaError_t launch_add(std::size_t count, const float* from, float* to, cudaStream_t stream) {
  add<<<blocks_of(count, kThreads), kThreads, 0, stream>>>(count, from, to);
  return cudaGetLastError();
}

}  // namespace rrfp
