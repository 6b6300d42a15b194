// A chain of matrix products in shared memory: work whose length is the number
// of products, and whose result is known exactly.
//
// The left factor P moves every row up by one, so after n products row i of the
// matrix is row (i + n) mod 64 of the first one. Its entries are whole numbers
// below 2^24, which float32 sums in any order without rounding.
#include "executor/cuda_launchers.h"

namespace rrfp {

namespace {

constexpr int kSize = 64;  // of a matrix: rows and columns
constexpr int kTile = 4;   // rows and columns of one thread
constexpr int kThreadsAcross = kSize / kTile;
constexpr int kThreads = kThreadsAcross * kThreadsAcross;

__device__ float first_entry(int row, int column) {
  return static_cast<float>(row * kSize + column);
}

__global__ void __launch_bounds__(kThreads) matrix_chain(int products, FaultReport report) {
  __shared__ float left[kSize][kSize + 1];  // a column more: no two rows in one bank
  __shared__ float right[kSize][kSize];
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kSize * kSize; i += kThreads) {
    const int row = i / kSize;
    const int column = i % kSize;
    left[row][column] = column == (row + 1) % kSize ? 1.0F : 0.0F;
    right[row][column] = first_entry(row, column);
  }
  __syncthreads();
  const int first_row = thread / kThreadsAcross * kTile;
  const int first_column = thread % kThreadsAcross * kTile;
  for (int product = 0; product < products; ++product) {
    float sum[kTile][kTile] = {};
    for (int k = 0; k < kSize; ++k) {
#pragma unroll
      for (int i = 0; i < kTile; ++i) {
#pragma unroll
        for (int j = 0; j < kTile; ++j) {
          sum[i][j] += left[first_row + i][k] * right[k][first_column + j];
        }
      }
    }
    __syncthreads();
    for (int i = 0; i < kTile; ++i) {
      for (int j = 0; j < kTile; ++j) right[first_row + i][first_column + j] = sum[i][j];
    }
    __syncthreads();
  }
  for (int i = thread; i < kSize * kSize; i += kThreads) {
    const int row = i / kSize;
    const int column = i % kSize;
    if (right[row][column] != first_entry((row + products) % kSize, column)) {
      *static_cast<volatile std::uint32_t*>(report.fault) = report.fault_code;
    }
  }
}

}  // namespace

cudaError_t launch_matrix_chain(int blocks, int products, FaultReport report, cudaStream_t stream) {
  matrix_chain<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(products, report);
  return cudaGetLastError();
}

}  // namespace rrfp
