#include "executor/model_embedding.h"

namespace rrfp {

namespace {
constexpr Real kDeviation = 0.1;
}

Embedding::Embedding(const ModelSpec& spec, int root)
    : token_(make_parameter("root " + std::to_string(root) + " token", kTokens, spec.width)),
      position_(
          make_parameter("root " + std::to_string(root) + " position", spec.longest, spec.width)) {
  draw(spec, {WeightKind::kToken, root, 0, 0, spec.width}, kDeviation, token_.value);
  draw(spec, {WeightKind::kPosition, root, 0, 0, spec.width}, kDeviation, position_.value);
}

Matrix Embedding::forward(const std::vector<std::uint8_t>& tokens, Stash& stash) const {
  RRFP_CHECK(static_cast<Eigen::Index>(tokens.size()) <= position_.value.rows());
  stash.tokens = tokens;
  Matrix output(static_cast<Eigen::Index>(tokens.size()), token_.value.cols());
  for (Eigen::Index row = 0; row < output.rows(); ++row) {
    output.row(row) =
        token_.value.row(tokens[static_cast<std::size_t>(row)]) + position_.value.row(row);
  }
  return output;
}

void Embedding::input_gradient(const Matrix& output_gradient, Stash& stash) const {
  stash.output_gradient = output_gradient;
}

void Embedding::weight_gradient(Stash& stash) {
  for (Eigen::Index row = 0; row < stash.output_gradient.rows(); ++row) {
    token_.gradient.row(stash.tokens[static_cast<std::size_t>(row)]) +=
        stash.output_gradient.row(row);
    position_.gradient.row(row) += stash.output_gradient.row(row);
  }
  stash = {};
}

std::int64_t Embedding::weight_bytes(std::int64_t rows) const {
  return rows + bytes_of(rows, token_.value.cols());
}

void Embedding::list(ParameterList& parameters) {
  parameters.push_back(&token_);
  parameters.push_back(&position_);
}

}  // namespace rrfp
