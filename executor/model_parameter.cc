#include "executor/model_parameter.h"

#include <cmath>

#include "scheduler_core/random.h"

namespace rrfp {

void draw(const ModelSpec& spec, const WeightSlice& slice, Real deviation,
          Eigen::Ref<Matrix, 0, Eigen::OuterStride<>> to) {
  const Real bound = deviation * std::sqrt(Real{3});
  for (Eigen::Index row = 0; row < to.rows(); ++row) {
    for (Eigen::Index column = 0; column < to.cols(); ++column) {
      DrawKey key;
      key.seed = spec.seed;
      key.purpose = static_cast<std::uint64_t>(slice.kind);
      key.iteration = static_cast<std::uint64_t>(slice.block);
      key.index = static_cast<std::uint64_t>((slice.first_row + row) * slice.all_columns +
                                             slice.first_column + column);
      to(row, column) = bound * (2 * random_unit(key) - 1);
    }
  }
}

Parameter make_parameter(std::string name, int rows, int columns) {
  return {std::move(name), Matrix::Zero(rows, columns), Matrix::Zero(rows, columns),
          Matrix::Zero(rows, columns)};
}

std::string weight_name(const std::string& owner, const char* weight) {
  return owner + " " + weight;
}

std::string weight_name(const std::string& owner, const char* weight, const ModelSpec& spec,
                        int lane) {
  std::string name = weight_name(owner, weight);
  if (spec.lanes > 1) name += ", lane " + std::to_string(lane);
  return name;
}

}  // namespace rrfp
