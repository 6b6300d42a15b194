// How the threads of a block make one number of many, for kernels alone.
//
// Invariant: the order is a fixed tree over the threads, whatever they did
// before; with a fixed number of threads, sums of equal numbers are equal bits.
#pragma once

namespace rrfp {

/// Threads of a block that works on one row.
inline constexpr int kRowThreads = 128;

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Most {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

/// Every thread gets what the numbers of all come to. REQUIRES: kRowThreads
/// threads, and all of them call.
template <typename Combine>
__device__ float combine_row(float mine, Combine combine) {
  __shared__ float part[kRowThreads];
  const int thread = static_cast<int>(threadIdx.x);
  part[thread] = mine;
  __syncthreads();
  for (int half = kRowThreads / 2; half > 0; half /= 2) {
    if (thread < half) part[thread] = combine(part[thread], part[thread + half]);
    __syncthreads();
  }
  const float all = part[0];
  __syncthreads();  // before the next call writes
  return all;
}

/// Columns of a block that sums over rows, and threads that share a column.
inline constexpr int kSumColumns = 32;
inline constexpr int kSumThreads = 8;

/// The sum over rows of number(row) for the thread's column, in its first
/// thread (threadIdx.y is 0). REQUIRES: kSumColumns x kSumThreads threads.
template <typename Number>
__device__ float sum_over_rows(int rows, Number number) {
  __shared__ float part[kSumThreads][kSumColumns];
  const int first = static_cast<int>(threadIdx.y);
  float mine = 0;
  for (int row = first; row < rows; row += kSumThreads) mine += number(row);
  part[first][threadIdx.x] = mine;
  __syncthreads();
  for (int half = kSumThreads / 2; half > 0; half /= 2) {
    if (first < half) part[first][threadIdx.x] += part[first + half][threadIdx.x];
    __syncthreads();
  }
  const float sum = part[0][threadIdx.x];
  __syncthreads();
  return sum;
}

/// Blocks of `threads` threads for `count` numbers, one a thread.
inline unsigned blocks_of(std::size_t count, int threads) {
  return static_cast<unsigned>((count + static_cast<std::size_t>(threads) - 1) /
                               static_cast<std::size_t>(threads));
}

}  // namespace rrfp
