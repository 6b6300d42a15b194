#include "executor/model_layer_norm.h"

#include <cmath>

namespace rrfp {

namespace {
constexpr Real kEpsilon = 1e-5;  // added to the variance
}

LayerNorm::LayerNorm(const std::string& name, int width)
    : gain_(make_parameter(weight_name(name, "gain"), 1, width)),
      bias_(make_parameter(weight_name(name, "bias"), 1, width)) {
  gain_.value.setOnes();
}

Matrix LayerNorm::forward(const Matrix& input, Stash& stash) const {
  const auto width = static_cast<Real>(input.cols());
  stash.normalized.resize(input.rows(), input.cols());
  stash.inverse_deviation.resize(input.rows(), 1);
  Matrix output(input.rows(), input.cols());
  for (Eigen::Index row = 0; row < input.rows(); ++row) {
    Real sum = 0;
    for (Eigen::Index i = 0; i < input.cols(); ++i) sum += input(row, i);
    const Real mean = sum / width;
    Real squares = 0;
    for (Eigen::Index i = 0; i < input.cols(); ++i) {
      squares += (input(row, i) - mean) * (input(row, i) - mean);
    }
    const Real inverse = 1 / std::sqrt(squares / width + kEpsilon);
    stash.inverse_deviation(row, 0) = inverse;
    for (Eigen::Index i = 0; i < input.cols(); ++i) {
      const Real normalized = (input(row, i) - mean) * inverse;
      stash.normalized(row, i) = normalized;
      output(row, i) = normalized * gain_.value(0, i) + bias_.value(0, i);
    }
  }
  return output;
}

// With n the normalised row and g the gradient times the gain:
// dx = (g - mean(g) - n mean(g n)) / deviation.
Matrix LayerNorm::input_gradient(const Matrix& output_gradient, Stash& stash) const {
  const Matrix& normalized = stash.normalized;
  const auto width = static_cast<Real>(normalized.cols());
  stash.gain_gradient = Matrix::Zero(1, normalized.cols());
  stash.bias_gradient = Matrix::Zero(1, normalized.cols());
  Matrix gradient(normalized.rows(), normalized.cols());
  for (Eigen::Index row = 0; row < normalized.rows(); ++row) {
    Real sum = 0;
    Real along = 0;
    for (Eigen::Index i = 0; i < normalized.cols(); ++i) {
      const Real of_output = output_gradient(row, i);
      stash.gain_gradient(0, i) += of_output * normalized(row, i);
      stash.bias_gradient(0, i) += of_output;
      const Real scaled = of_output * gain_.value(0, i);
      gradient(row, i) = scaled;
      sum += scaled;
      along += scaled * normalized(row, i);
    }
    const Real mean = sum / width;
    const Real mean_along = along / width;
    const Real inverse = stash.inverse_deviation(row, 0);
    for (Eigen::Index i = 0; i < normalized.cols(); ++i) {
      gradient(row, i) = (gradient(row, i) - mean - normalized(row, i) * mean_along) * inverse;
    }
  }
  release(stash.normalized);
  release(stash.inverse_deviation);
  return gradient;
}

void LayerNorm::weight_gradient(Stash& stash) {
  gain_.gradient += stash.gain_gradient;
  bias_.gradient += stash.bias_gradient;
  stash = {};
}

std::int64_t LayerNorm::forward_bytes(std::int64_t rows) const {
  return bytes_of(rows, gain_.value.cols() + 1);
}

std::int64_t LayerNorm::weight_bytes() const { return bytes_of(2, gain_.value.cols()); }

void LayerNorm::list(ParameterList& parameters) {
  parameters.push_back(&gain_);
  parameters.push_back(&bias_);
}

}  // namespace rrfp
