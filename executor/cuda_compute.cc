#include "executor/cuda_compute.h"

#include <string>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

// As cuBLAS recommends for sm_90.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

CudaMatrices one(const CudaMatrix& matrix) { return {matrix, 0}; }

}  // namespace

Result<std::unique_ptr<CudaCompute>> CudaCompute::create(cudaStream_t stream, bool tf32) {
  std::unique_ptr<CudaCompute> made(new CudaCompute(stream));
  if (Result<void> prepared = made->prepare(tf32); !prepared.ok()) return prepared.error();
  return made;
}

Result<void> CudaCompute::prepare(bool tf32) {
  const Result<CudaBlasFunctions> functions = load_cuda_blas();
  if (!functions.ok()) return functions.error();
  blas_ = *functions;
  Result<CudaMemory> workspace = CudaMemory::create(kWorkspaceBytes, "the workspace of cuBLAS");
  if (!workspace.ok()) return workspace.error();
  workspace_ = std::move(*workspace);
  const auto check = [this](const char* call, cublasStatus_t status) -> Result<void> {
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return Error{std::string(call) + ": " + blas_.status_text(status)};
  };
  Result<void> done = check("cublasCreate", blas_.create(&handle_));
  // Setting the stream resets the workspace, so it comes first.
  if (done.ok()) done = check("cublasSetStream", blas_.set_stream(handle_, stream_));
  if (done.ok()) {
    done = check("cublasSetWorkspace",
                 blas_.set_workspace(handle_, workspace_.data(), workspace_.bytes()));
  }
  if (done.ok()) {
    done = check("cublasSetMathMode", blas_.set_math_mode(handle_, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH
                                                                        : CUBLAS_DEFAULT_MATH));
  }
  return done;
}

CudaCompute::~CudaCompute() {
  cudaStreamSynchronize(stream_);
  if (handle_ != nullptr) blas_.destroy(handle_);
}

Result<void> CudaCompute::wait() const {
  if (failure_) return *failure_;
  return check_cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
}

void CudaCompute::copy(const CudaMatrix& from, const CudaMatrix& to) {
  RRFP_CHECK(from.rows == to.rows && from.columns == to.columns);
  RRFP_CHECK(from.stride == from.columns && to.stride == to.columns);
  run("cudaMemcpyAsync", [&](cudaStream_t stream) {
    return cudaMemcpyAsync(to.data, from.data, from.bytes(), cudaMemcpyDeviceToDevice, stream);
  });
}

int CudaCompute::Factor::rows() const {
  return operation == CUBLAS_OP_N ? matrices.first.rows : matrices.first.columns;
}

int CudaCompute::Factor::columns() const {
  return operation == CUBLAS_OP_N ? matrices.first.columns : matrices.first.rows;
}

// to = scale a b + keep to. cuBLAS has matrices by column: to it, ours are their transposed ones,
// and to^T = b^T a^T.
void CudaCompute::multiply(int count, float scale, const Factor& a, const Factor& b, float keep,
                           const CudaMatrices& to) {
  if (failure_) return;
  const CudaMatrix& result = to.first;
  RRFP_CHECK(a.columns() == b.rows() && result.rows == a.rows() && result.columns == b.columns());
  const CudaMatrix& left = b.matrices.first;
  const CudaMatrix& right = a.matrices.first;
  const cublasStatus_t status =
      count == 1 ? blas_.product(handle_, b.operation, a.operation, result.columns, result.rows,
                                 a.columns(), &scale, left.data, left.stride, right.data,
                                 right.stride, &keep, result.data, result.stride)
                 : blas_.products(handle_, b.operation, a.operation, result.columns, result.rows,
                                  a.columns(), &scale, left.data, left.stride, b.matrices.step,
                                  right.data, right.stride, a.matrices.step, &keep, result.data,
                                  result.stride, to.step, count);
  if (status != CUBLAS_STATUS_SUCCESS) {
    failure_ = Error{std::string("cublasSgemm: ") + blas_.status_text(status)};
  }
}

void CudaCompute::product(const CudaMatrix& a, const CudaMatrix& b, const CudaMatrix& to) {
  multiply(1, 1, {one(a), CUBLAS_OP_N}, {one(b), CUBLAS_OP_N}, 0, one(to));
}

void CudaCompute::product_by_transposed(const CudaMatrix& a, const CudaMatrix& b,
                                        const CudaMatrix& to) {
  multiply(1, 1, {one(a), CUBLAS_OP_N}, {one(b), CUBLAS_OP_T}, 0, one(to));
}

void CudaCompute::add_transposed_product(const CudaMatrix& a, const CudaMatrix& b,
                                         const CudaMatrix& sum) {
  multiply(1, 1, {one(a), CUBLAS_OP_T}, {one(b), CUBLAS_OP_N}, 1, one(sum));
}

void CudaCompute::products(int count, const CudaMatrices& a, const CudaMatrices& b,
                           const CudaMatrices& to) {
  multiply(count, 1, {a, CUBLAS_OP_N}, {b, CUBLAS_OP_N}, 0, to);
}

void CudaCompute::products_by_transposed(int count, float scale, const CudaMatrices& a,
                                         const CudaMatrices& b, const CudaMatrices& to) {
  multiply(count, scale, {a, CUBLAS_OP_N}, {b, CUBLAS_OP_T}, 0, to);
}

void CudaCompute::transposed_products(int count, const CudaMatrices& a, const CudaMatrices& b,
                                      const CudaMatrices& to) {
  multiply(count, 1, {a, CUBLAS_OP_T}, {b, CUBLAS_OP_N}, 0, to);
}

}  // namespace rrfp
