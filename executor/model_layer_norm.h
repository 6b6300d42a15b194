// Layer normalisation: every row is brought to mean 0 and deviation 1, then
// scaled and shifted by learned rows.
//
// The gradient of its two rows is summed over positions in the input-gradient
// pass already: what waits for W is then two rows, not two matrices.
//
// Thread safety: const methods may run at the same time.
#pragma once

#include <string>

#include "executor/model_parameter.h"

namespace rrfp {

class LayerNorm {
 public:
  /// What one microbatch keeps.
  struct Stash {
    Matrix normalized;         // F to I
    Matrix inverse_deviation;  // F to I: rows x 1
    Matrix gain_gradient;      // I to W
    Matrix bias_gradient;      // I to W

    std::int64_t bytes() const {
      return bytes_of(normalized) + bytes_of(inverse_deviation) + bytes_of(gain_gradient) +
             bytes_of(bias_gradient);
    }
  };

  LayerNorm(const std::string& name, int width);

  Matrix forward(const Matrix& input, Stash& stash) const;
  Matrix input_gradient(const Matrix& output_gradient, Stash& stash) const;
  void weight_gradient(Stash& stash);

  std::int64_t forward_bytes(std::int64_t rows) const;  ///< held from F to I
  std::int64_t weight_bytes() const;                    ///< held from I to W
  void list(ParameterList& parameters);

 private:
  Parameter gain_;
  Parameter bias_;
};

}  // namespace rrfp
