// The functions of cuBLAS that are used, over the double's streams. As there,
// matrices are by column, and a handle remembers its stream.
#include <string>

#include "executor/cuda_blas_functions.h"
#include "executor/cuda_double_work.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace rrfp {

namespace {

cublasStatus_t create(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_workspace(cublasHandle_t, void*, std::size_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t set_math_mode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }

/// Number (i, l) is at i * of_row + l * of_column.
struct Operand {
  const float* numbers = nullptr;
  std::size_t of_row = 0;
  std::size_t of_column = 0;
};

struct Shape {
  std::size_t rows = 0;     // of the result, by column
  std::size_t columns = 0;  // of the result
  std::size_t inner = 0;
};

Operand operand(cublasOperation_t operation, const float* numbers, int leading) {
  const auto step = static_cast<std::size_t>(leading);
  return operation == CUBLAS_OP_N ? Operand{numbers, 1, step} : Operand{numbers, step, 1};
}

// c = alpha a b + beta c. With beta 0, what is in c does not matter, not even if it is no number.
void multiply(const Shape& shape, float alpha, const Operand& a, const Operand& b, float beta,
              float* c, std::size_t leading) {
  for (std::size_t j = 0; j < shape.columns; ++j) {
    for (std::size_t i = 0; i < shape.rows; ++i) {
      float sum = 0;
      for (std::size_t l = 0; l < shape.inner; ++l) {
        sum +=
            a.numbers[i * a.of_row + l * a.of_column] * b.numbers[l * b.of_row + j * b.of_column];
      }
      float& to = c[j * leading + i];
      to = alpha * sum + (beta == 0 ? 0 : beta * to);
    }
  }
}

// From the first number of a matrix to the last.
std::size_t extent(int rows, int columns, int leading) {
  return static_cast<std::size_t>(columns - 1) * static_cast<std::size_t>(leading) +
         static_cast<std::size_t>(rows);
}

cublasStatus_t products(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b,
                        int m, int n, int k, const float* alpha, const float* a, int leading_a,
                        long long step_a, const float* b, int leading_b, long long step_b,
                        const float* beta, float* c, int leading_c, long long step_c, int count) {
  const int a_rows = of_a == CUBLAS_OP_N ? m : k;
  const int b_rows = of_b == CUBLAS_OP_N ? k : n;
  if (m < 1 || n < 1 || k < 1 || count < 1 || leading_a < a_rows || leading_b < b_rows ||
      leading_c < m) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto last = static_cast<std::size_t>(count - 1);
  const auto all = [last](long long step, std::size_t one) {
    return last * static_cast<std::size_t>(step) + one;
  };
  const DoubleWork work{"a matrix product",
                        {reads(a, all(step_a, extent(a_rows, m + k - a_rows, leading_a))),
                         reads(b, all(step_b, extent(b_rows, n + k - b_rows, leading_b))),
                         writes(c, all(step_c, extent(m, n, leading_c)))}};
  const Shape shape{static_cast<std::size_t>(m), static_cast<std::size_t>(n),
                    static_cast<std::size_t>(k)};
  load_library_kernel("a product of matrices, " + std::to_string(m) + " x " + std::to_string(k) +
                      " by " + std::to_string(k) + " x " + std::to_string(n));
  const cudaError_t code = enqueue_loaded(handle->stream, work, [=, alpha = *alpha, beta = *beta] {
    for (int i = 0; i < count; ++i) {
      multiply(shape, alpha, operand(of_a, a + i * step_a, leading_a),
               operand(of_b, b + i * step_b, leading_b), beta, c + i * step_c,
               static_cast<std::size_t>(leading_c));
    }
  });
  return code == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t product(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m,
                       int n, int k, const float* alpha, const float* a, int leading_a,
                       const float* b, int leading_b, const float* beta, float* c, int leading_c) {
  return products(handle, of_a, of_b, m, n, k, alpha, a, leading_a, 0, b, leading_b, 0, beta, c,
                  leading_c, 0, 1);
}

// Stays until the thread asks again.
const char* status_text(cublasStatus_t) {
  thread_local std::string text;
  text = DoubleMachine::get().objection();
  return text.empty() ? "the function failed" : text.c_str();
}

}  // namespace

Result<CudaBlasFunctions> load_cuda_blas() {
  return CudaBlasFunctions{create,        destroy, set_stream, set_workspace,
                           set_math_mode, product, products,   status_text};
}

}  // namespace rrfp
