// A weight, with what training keeps beside it.
//
// Thread safety: none; a parameter belongs to one stage on one worker.
#pragma once

#include <string>
#include <vector>

#include "executor/model_spec.h"
#include "executor/model_tensor.h"

namespace rrfp {

struct Parameter {
  std::string name;  ///< unique in the model: "block 2 mlp in, lane 0"
  Matrix value;
  Matrix gradient;  ///< of this iteration so far
  Matrix velocity;  ///< of the optimizer
};

/// All parameters of a layer or a stage, always in the same order.
using ParameterList = std::vector<Parameter*>;

/// Which numbers a weight is drawn with. One value per kind of weight.
enum class WeightKind : std::uint64_t {
  kToken = 0x7700,
  kPosition,
  kQuery,
  kKey,
  kValue,
  kAttentionOut,
  kMlpIn,
  kMlpOut,
  kHead,
};

/// Part of a weight of the whole model: the rows from first_row on and the
/// columns from first_column on of a matrix with `all_columns`.
struct WeightSlice {
  WeightKind kind = WeightKind::kToken;
  int block = 0;  ///< or the number of a root
  int first_row = 0;
  int first_column = 0;
  int all_columns = 0;
};

/// Uniform with deviation `deviation`; every element has a draw of its own, so
/// that slices agree with the whole.
void draw(const ModelSpec& spec, const WeightSlice& slice, Real deviation,
          Eigen::Ref<Matrix, 0, Eigen::OuterStride<>> to);

Parameter make_parameter(std::string name, int rows, int columns);

/// "block 2 attention out", for lane 1 of several ", lane 1" behind it.
std::string weight_name(const std::string& owner, const char* weight);
std::string weight_name(const std::string& owner, const char* weight, const ModelSpec& spec,
                        int lane);

}  // namespace rrfp
