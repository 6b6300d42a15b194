// The numbers of the training model and the products that it is made of.
//
// Invariant: the same inputs give the same bits, whoever computes and whatever
// ran before. Eigen runs on one thread with fixed blocking, and every sum that
// is not inside a product is a loop with an order that can be read off.
//
// Double precision, so that gradients can be held against finite differences:
// the model is here to prove that runs are equal, not to be fast.
//
// Thread safety: pure functions.
#pragma once

// CMake defines this for the room; whoever includes this elsewhere needs it too.
#ifndef EIGEN_DONT_PARALLELIZE
#define EIGEN_DONT_PARALLELIZE
#endif

#include <Eigen/Core>
#include <cstdint>
#include <string>

#include "executor/letter.h"
#include "scheduler_core/result.h"

namespace rrfp {

using Real = double;
/// A row is a position of a sequence, or a row of weights.
using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
/// Reads a matrix or a block of one, without a copy.
using View = Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>;

/// a b, a b^T and sum += a^T b.
Matrix product(const View& a, const View& b);
Matrix product_by_transposed(const View& a, const View& b);
void add_transposed_product(const View& a, const View& b, Matrix& sum);
/// a^T b.
Matrix transposed_product(const View& a, const View& b);

/// Adds `row` (1 x columns) to every row of `to`.
void add_to_rows(const Matrix& row, Matrix& to);
/// sum (1 x columns) += all rows of `of`, in order.
void add_rows(const View& of, Matrix& sum);

inline std::int64_t bytes_of(const Matrix& matrix) {
  return static_cast<std::int64_t>(matrix.size()) * static_cast<std::int64_t>(sizeof(Real));
}
inline std::int64_t bytes_of(std::int64_t rows, std::int64_t columns) {
  return rows * columns * static_cast<std::int64_t>(sizeof(Real));
}
/// Gives its memory back.
inline void release(Matrix& matrix) { Matrix().swap(matrix); }

/// A matrix as it travels, and back. The error names the size and the columns.
Payload to_payload(const Matrix& matrix);
Result<Matrix> to_matrix(const Payload& payload, int columns);

}  // namespace rrfp
