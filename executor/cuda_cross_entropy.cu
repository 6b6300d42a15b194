// The cross entropy of the byte that comes next: a block has a row of scores,
// from which come the chances of all bytes and the loss of the right one.
#include "executor/cuda_block_sums.h"
#include "executor/cuda_model_launchers.h"

namespace rrfp {

namespace {

__global__ void cross_entropy(int width, const std::uint8_t* targets, float* scores,
                              float* losses) {
  float* const row = scores + std::size_t{blockIdx.x} * width;
  const float score_of_target = row[targets[blockIdx.x]];
  float mine = row[0];
  for (int i = threadIdx.x; i < width; i += kRowThreads) mine = fmaxf(mine, row[i]);
  const float most = combine_row(mine, Most());
  mine = 0;
  for (int i = threadIdx.x; i < width; i += kRowThreads) mine += expf(row[i] - most);
  const float log_sum = most + logf(combine_row(mine, Sum()));
  for (int i = threadIdx.x; i < width; i += kRowThreads) row[i] = expf(row[i] - log_sum);
  if (threadIdx.x == 0) losses[blockIdx.x] = log_sum - score_of_target;
}

// In double precision and in order: what people see is no less exact than it must be.
__global__ void sum_losses(int count, const float* losses, double* sum) {
  double total = 0;
  for (int i = 0; i < count; ++i) total += losses[i];
  *static_cast<volatile double*>(sum) = total;
}

__global__ void cross_entropy_gradient(int width, const std::uint8_t* targets, float scale,
                                       float* chances) {
  float* const row = chances + std::size_t{blockIdx.x} * width;
  const int target = targets[blockIdx.x];
  for (int i = threadIdx.x; i < width; i += kRowThreads) {
    row[i] = scale * (i == target ? row[i] - 1 : row[i]);
  }
}

}  // namespace

cudaError_t launch_cross_entropy(TensorShape shape, const std::uint8_t* targets, float* scores,
                                 float* losses, cudaStream_t stream) {
  cross_entropy<<<shape.rows, kRowThreads, 0, stream>>>(shape.columns, targets, scores, losses);
  return cudaGetLastError();
}

cudaError_t launch_sum_losses(int count, const float* losses, double* sum, cudaStream_t stream) {
  sum_losses<<<1, 1, 0, stream>>>(count, losses, sum);
  return cudaGetLastError();
}

cudaError_t launch_cross_entropy_gradient(TensorShape shape, const std::uint8_t* targets,
                                          float scale, float* chances, cudaStream_t stream) {
  cross_entropy_gradient<<<shape.rows, kRowThreads, 0, stream>>>(shape.columns, targets, scale,
                                                                 chances);
  return cudaGetLastError();
}

}  // namespace rrfp
