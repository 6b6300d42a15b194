// Multi-head self-attention. Lanes split the heads: each projects its own
// queries, keys and values, and what it adds to the output is summed over the
// lanes (so is, in the backward, what it adds to the input's gradient).
//
// Thread safety: const methods may run at the same time.
#pragma once

#include <string>
#include <vector>

#include "executor/model_lane_sum.h"
#include "executor/model_parameter.h"

namespace rrfp {

class Attention {
 public:
  /// What one microbatch keeps.
  struct Stash {
    struct Lane {
      Matrix projected;             // F to I: queries, keys, values side by side
      std::vector<Matrix> weights;  // F to I: of each head
      Matrix context;               // F to W: what the heads gathered
      Matrix projected_gradient;    // I to W
    };
    Matrix input;            // F to W
    Matrix output_gradient;  // I to W
    std::vector<Lane> lanes;

    std::int64_t bytes() const;
  };

  /// `causal`: a position sees itself and those before it, else it sees all.
  Attention(const ModelSpec& spec, int block, const HeldLanes& held, bool causal);

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

  void attend(Stash::Lane& stash) const;
  Matrix attend_gradient(const Matrix& context_gradient, const Stash::Lane& stash) const;
  /// How many positions row `row` sees.
  Eigen::Index seen(Eigen::Index row, Eigen::Index rows) const { return causal_ ? row + 1 : rows; }

  bool causal_;
  int width_;
  int head_width_;
  int lane_heads_;
  int lane_width_;
  std::vector<Lane> lanes_;
  Parameter out_bias_;
};

}  // namespace rrfp
