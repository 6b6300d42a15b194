// From bytes to the stream: a learned row for each byte and one for each
// position, added. Every root of the model has its own.
//
// Thread safety: const methods may run at the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/model_parameter.h"

namespace rrfp {

class Embedding {
 public:
  /// What one microbatch keeps.
  struct Stash {
    std::vector<std::uint8_t> tokens;  // F to W
    Matrix output_gradient;            // I to W

    std::int64_t bytes() const {
      return static_cast<std::int64_t>(tokens.size()) + bytes_of(output_gradient);
    }
  };

  /// `root`: the how-manieth root of the model, 0 its decoder's.
  Embedding(const ModelSpec& spec, int root);

  /// REQUIRES: at most spec.longest tokens.
  Matrix forward(const std::vector<std::uint8_t>& tokens, Stash& stash) const;
  /// Bytes have no gradient: only keeps what W needs.
  void input_gradient(const Matrix& output_gradient, Stash& stash) const;
  void weight_gradient(Stash& stash);

  std::int64_t forward_bytes(std::int64_t rows) const { return rows; }
  std::int64_t weight_bytes(std::int64_t rows) const;
  void list(ParameterList& parameters);

 private:
  Parameter token_;
  Parameter position_;
};

}  // namespace rrfp
