// The optimizer: stochastic gradient descent with momentum, over all weights of
// a stage at once.
#include "executor/cuda_block_sums.h"
#include "executor/cuda_model_launchers.h"

namespace rrfp {

namespace {

constexpr int kThreads = 256;

__global__ void momentum_step(std::size_t count, MomentumStep step, float* value, float* gradient,
                              float* velocity) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const float speed = step.momentum * velocity[i] + gradient[i];
  velocity[i] = speed;
  value[i] -= step.learning_rate * speed;
  gradient[i] = 0;
}

}  // namespace

cudaError_t launch_momentum_step(std::size_t count, MomentumStep step, float* value,
                                 float* gradient, float* velocity, cudaStream_t stream) {
  momentum_step<<<blocks_of(count, kThreads), kThreads, 0, stream>>>(count, step, value, gradient,
                                                                     velocity);
  return cudaGetLastError();
}

}  // namespace rrfp
