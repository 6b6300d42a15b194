// GELU by its tanh form (Hendrycks and Gimpel, arXiv 1606.08415), and its slope.
#include "executor/cuda_block_sums.h"
#include "executor/cuda_model_launchers.h"

namespace rrfp {

namespace {

constexpr int kThreads = 256;
constexpr float kSlope = 0.7978845608028654F;  // sqrt(2 / pi)
constexpr float kCubic = 0.044715F;

__global__ void activation(TensorShape shape, const float* bias, float* hidden, float* active) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= std::size_t(shape.rows) * shape.columns) return;
  const float x = hidden[i] + bias[i % shape.columns];
  hidden[i] = x;
  active[i] = 0.5F * x * (1 + tanhf(kSlope * (x + kCubic * x * x * x)));
}

__global__ void activation_gradient(std::size_t count, const float* hidden, float* gradient) {
  const std::size_t i = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const float x = hidden[i];
  const float t = tanhf(kSlope * (x + kCubic * x * x * x));
  gradient[i] *= 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * kSlope * (1 + 3 * kCubic * x * x);
}

}  // namespace

cudaError_t launch_activation(TensorShape shape, const float* bias, float* hidden, float* active,
                              cudaStream_t stream) {
  activation<<<blocks_of(shape.size(), kThreads), kThreads, 0, stream>>>(shape, bias, hidden,
                                                                         active);
  return cudaGetLastError();
}

cudaError_t launch_activation_gradient(std::size_t count, const float* hidden, float* gradient,
                                       cudaStream_t stream) {
  activation_gradient<<<blocks_of(count, kThreads), kThreads, 0, stream>>>(count, hidden, gradient);
  return cudaGetLastError();
}

}  // namespace rrfp
