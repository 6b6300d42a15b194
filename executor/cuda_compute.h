// A stream that computes: kernels, and matrix products by cuBLAS. The layers of
// the model are written down as what they enqueue here, from top to bottom; what
// goes wrong is kept, and asked for at the end of a pass.
//
// Invariants
//  1. The handle has a workspace of its own, so that the same products in the
//     same order give the same bits, whatever other streams do.
//  2. The first failure is kept; nothing is enqueued after it.
//
// Thread safety: one thread.
#pragma once

#include <memory>
#include <optional>

#include "executor/cuda_blas_functions.h"
#include "executor/cuda_memory.h"
#include "executor/cuda_model_launchers.h"

namespace rrfp {

/// A matrix by row, or some columns of one.
struct CudaMatrix {
  float* data = nullptr;
  int rows = 0;
  int columns = 0;
  int stride = 0;  ///< numbers from a row to the next

  static CudaMatrix dense(float* data, int rows, int columns) {
    return {data, rows, columns, columns};
  }
  CudaMatrix middle_columns(int first, int count) const {
    return {data + first, rows, count, stride};
  }
  CudaMatrix middle_rows(int first, int count) const {
    return {data + static_cast<std::ptrdiff_t>(first) * stride, count, columns, stride};
  }
  TensorShape shape() const { return {rows, columns}; }
  std::size_t size() const { return shape().size(); }
  std::size_t bytes() const { return size() * sizeof(float); }
};

/// Equal matrices, each `step` numbers after the one before: one for each head.
struct CudaMatrices {
  CudaMatrix first;
  std::ptrdiff_t step = 0;
};

class CudaCompute {
 public:
  /// `stream` outlives it. `tf32`: products may round their inputs to 10 bits.
  static Result<std::unique_ptr<CudaCompute>> create(cudaStream_t stream, bool tf32);
  ~CudaCompute();
  CudaCompute(const CudaCompute&) = delete;
  CudaCompute& operator=(const CudaCompute&) = delete;

  cudaStream_t stream() const { return stream_; }
  const std::optional<Error>& failure() const { return failure_; }
  void fail(Error error) {
    if (!failure_) failure_ = std::move(error);
  }

  /// Calls `launch(stream)` unless something has failed.
  template <typename Launch>
  void run(const char* what, Launch launch) {
    if (failure_) return;
    if (const cudaError_t code = launch(stream_); code != cudaSuccess) {
      failure_ = cuda_error(what, code);
    }
  }
  /// Until all that is enqueued has been done.
  Result<void> wait() const;
  void copy(const CudaMatrix& from, const CudaMatrix& to);  ///< REQUIRES: both dense

  /// to = a b, to = a b^T, to = a^T b, and sum += a^T b.
  void product(const CudaMatrix& a, const CudaMatrix& b, const CudaMatrix& to);
  void product_by_transposed(const CudaMatrix& a, const CudaMatrix& b, const CudaMatrix& to);
  void add_transposed_product(const CudaMatrix& a, const CudaMatrix& b, const CudaMatrix& sum);
  /// The same for `count` matrices each, the second times `scale`.
  void products(int count, const CudaMatrices& a, const CudaMatrices& b, const CudaMatrices& to);
  void products_by_transposed(int count, float scale, const CudaMatrices& a, const CudaMatrices& b,
                              const CudaMatrices& to);
  void transposed_products(int count, const CudaMatrices& a, const CudaMatrices& b,
                           const CudaMatrices& to);

 private:
  /// A factor as it stands, or transposed.
  struct Factor {
    CudaMatrices matrices;
    cublasOperation_t operation = CUBLAS_OP_N;
    int rows() const;
    int columns() const;
  };

  explicit CudaCompute(cudaStream_t stream) : stream_(stream) {}
  Result<void> prepare(bool tf32);
  void multiply(int count, float scale, const Factor& a, const Factor& b, float keep,
                const CudaMatrices& to);

  cudaStream_t stream_;
  CudaBlasFunctions blas_;
  cublasHandle_t handle_ = nullptr;
  CudaMemory workspace_;
  std::optional<Error> failure_;
};

}  // namespace rrfp
