#include "executor/model_tensor.h"

#include <cstring>

namespace rrfp {

namespace {

// Eigen would measure the caches of the machine, and the sizes of its blocks
// decide in which order a product is summed.
const bool kBlockingIsFixed = [] {
  Eigen::setCpuCacheSizes(32 * 1024, 512 * 1024, 2 * 1024 * 1024);
  return true;
}();

}  // namespace

Matrix product(const View& a, const View& b) {
  RRFP_CHECK(kBlockingIsFixed && a.cols() == b.rows());
  Matrix result(a.rows(), b.cols());
  result.noalias() = a * b;
  return result;
}

Matrix product_by_transposed(const View& a, const View& b) {
  RRFP_CHECK(a.cols() == b.cols());
  Matrix result(a.rows(), b.rows());
  result.noalias() = a * b.transpose();
  return result;
}

void add_transposed_product(const View& a, const View& b, Matrix& sum) {
  RRFP_CHECK(a.rows() == b.rows() && a.cols() == sum.rows() && b.cols() == sum.cols());
  sum.noalias() += a.transpose() * b;
}

Matrix transposed_product(const View& a, const View& b) {
  Matrix result = Matrix::Zero(a.cols(), b.cols());
  add_transposed_product(a, b, result);
  return result;
}

void add_to_rows(const Matrix& row, Matrix& to) {
  for (Eigen::Index i = 0; i < to.rows(); ++i) to.row(i) += row.row(0);
}

void add_rows(const View& of, Matrix& sum) {
  for (Eigen::Index i = 0; i < of.rows(); ++i) sum.row(0) += of.row(i);
}

Payload to_payload(const Matrix& matrix) {
  Payload payload(static_cast<std::size_t>(bytes_of(matrix)));
  if (!payload.empty()) std::memcpy(payload.data(), matrix.data(), payload.size());
  return payload;
}

Result<Matrix> to_matrix(const Payload& payload, int columns) {
  const std::size_t row_bytes = static_cast<std::size_t>(columns) * sizeof(Real);
  if (payload.size() % row_bytes != 0) {
    return Error{"a tensor of " + std::to_string(payload.size()) + " bytes came where rows of " +
                 std::to_string(columns) + " numbers were expected"};
  }
  Matrix matrix(static_cast<Eigen::Index>(payload.size() / row_bytes), columns);
  if (!payload.empty()) std::memcpy(matrix.data(), payload.data(), payload.size());
  return matrix;
}

}  // namespace rrfp
