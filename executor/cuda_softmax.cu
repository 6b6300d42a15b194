// The softmax of attention, and its gradient: a block has a row of one head.
#include "executor/cuda_block_sums.h"
#include "executor/cuda_model_launchers.h"

namespace rrfp {

namespace {

__global__ void softmax(int rows, bool causal, float* scores) {
  float* const row = scores + (std::size_t{blockIdx.y} * rows + blockIdx.x) * rows;
  const int seen = causal ? static_cast<int>(blockIdx.x) + 1 : rows;
  float mine = row[0];
  for (int i = threadIdx.x; i < seen; i += kRowThreads) mine = fmaxf(mine, row[i]);
  const float most = combine_row(mine, Most());
  mine = 0;
  for (int i = threadIdx.x; i < seen; i += kRowThreads) {
    row[i] = expf(row[i] - most);
    mine += row[i];
  }
  const float sum = combine_row(mine, Sum());
  for (int i = threadIdx.x; i < rows; i += kRowThreads) row[i] = i < seen ? row[i] / sum : 0;
}

__global__ void softmax_gradient(int rows, float scale, const float* weights, float* gradient) {
  const std::size_t from = (std::size_t{blockIdx.y} * rows + blockIdx.x) * rows;
  float mine = 0;
  for (int i = threadIdx.x; i < rows; i += kRowThreads) {
    mine += gradient[from + i] * weights[from + i];
  }
  const float along = combine_row(mine, Sum());
  for (int i = threadIdx.x; i < rows; i += kRowThreads) {
    gradient[from + i] = scale * weights[from + i] * (gradient[from + i] - along);
  }
}

dim3 rows_of_heads(int heads, int rows) {
  return {static_cast<unsigned>(rows), static_cast<unsigned>(heads)};
}

}  // namespace

cudaError_t launch_softmax(int heads, int rows, bool causal, float* scores, cudaStream_t stream) {
  softmax<<<rows_of_heads(heads, rows), kRowThreads, 0, stream>>>(rows, causal, scores);
  return cudaGetLastError();
}

cudaError_t launch_softmax_gradient(int heads, int rows, float scale, const float* weights,
                                    float* gradient, cudaStream_t stream) {
  softmax_gradient<<<rows_of_heads(heads, rows), kRowThreads, 0, stream>>>(rows, scale, weights,
                                                                           gradient);
  return cudaGetLastError();
}

}  // namespace rrfp
