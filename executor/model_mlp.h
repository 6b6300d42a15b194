// The two-layer network that every position passes through. Lanes split its
// hidden numbers.
//
// Thread safety: const methods may run at the same time.
#pragma once

#include <string>
#include <vector>

#include "executor/model_lane_sum.h"
#include "executor/model_parameter.h"

namespace rrfp {

class Mlp {
 public:
  /// What one microbatch keeps.
  struct Stash {
    struct Lane {
      Matrix hidden;           // F to I: before the activation function
      Matrix active;           // F to W: after it
      Matrix hidden_gradient;  // I to W
    };
    Matrix input;            // F to W
    Matrix output_gradient;  // I to W
    std::vector<Lane> lanes;

    std::int64_t bytes() const;
  };

  Mlp(const ModelSpec& spec, int block, const HeldLanes& held);

  Matrix forward(const Matrix& input, LaneSum& lanes, Stash& stash) const;
  Matrix input_gradient(const Matrix& output_gradient, LaneSum& lanes, Stash& stash) const;
  void weight_gradient(Stash& stash);

  std::int64_t forward_bytes(std::int64_t rows) const;
  std::int64_t weight_bytes(std::int64_t rows) const;
  void list(ParameterList& parameters);

 private:
  struct Lane {
    Parameter in;
    Parameter in_bias;
    Parameter out;
  };

  int width_;
  int lane_width_;
  std::vector<Lane> lanes_;
  Parameter out_bias_;
};

}  // namespace rrfp
