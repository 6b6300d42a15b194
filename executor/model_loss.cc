#include "executor/model_loss.h"

#include <algorithm>
#include <cmath>

namespace rrfp {

Head::Head(const ModelSpec& spec)
    : norm_("head norm", spec.width), out_(make_parameter("head out", spec.width, kTokens)) {
  draw(spec, {WeightKind::kHead, 0, 0, 0, kTokens}, 1 / std::sqrt(static_cast<Real>(spec.width)),
       out_.value);
}

Real Head::forward(const Matrix& input, const std::vector<std::uint8_t>& targets,
                   Stash& stash) const {
  const auto count = static_cast<Eigen::Index>(targets.size());
  RRFP_CHECK(count <= input.rows());
  stash.rows = input.rows();
  stash.targets = targets;
  stash.input = norm_.forward(input.bottomRows(count), stash.norm);
  Matrix scores = product(stash.input, out_.value);
  Real loss = 0;
  for (Eigen::Index row = 0; row < count; ++row) {
    Real most = scores(row, 0);
    for (Eigen::Index i = 1; i < kTokens; ++i) most = std::max(most, scores(row, i));
    Real sum = 0;
    for (Eigen::Index i = 0; i < kTokens; ++i) sum += std::exp(scores(row, i) - most);
    const Real log_sum = most + std::log(sum);
    loss += log_sum - scores(row, targets[static_cast<std::size_t>(row)]);
    for (Eigen::Index i = 0; i < kTokens; ++i) {
      scores(row, i) = std::exp(scores(row, i) - log_sum);
    }
  }
  stash.chances = std::move(scores);
  return loss;
}

Matrix Head::input_gradient(Real scale, Stash& stash) const {
  Matrix& gradient = stash.chances;
  for (Eigen::Index row = 0; row < gradient.rows(); ++row) {
    gradient(row, stash.targets[static_cast<std::size_t>(row)]) -= 1;
  }
  gradient *= scale;
  stash.score_gradient.swap(gradient);
  stash.targets.clear();
  Matrix result = Matrix::Zero(stash.rows, out_.value.rows());
  result.bottomRows(stash.score_gradient.rows()) =
      norm_.input_gradient(product_by_transposed(stash.score_gradient, out_.value), stash.norm);
  return result;
}

void Head::weight_gradient(Stash& stash) {
  norm_.weight_gradient(stash.norm);
  add_transposed_product(stash.input, stash.score_gradient, out_.gradient);
  stash = {};
}

std::int64_t Head::forward_bytes(std::int64_t targets) const {
  return norm_.forward_bytes(targets) + bytes_of(targets, out_.value.rows() + kTokens) + targets;
}

std::int64_t Head::weight_bytes(std::int64_t targets) const {
  return norm_.weight_bytes() + bytes_of(targets, out_.value.rows() + kTokens);
}

void Head::list(ParameterList& parameters) {
  norm_.list(parameters);
  parameters.push_back(&out_);
}

}  // namespace rrfp
