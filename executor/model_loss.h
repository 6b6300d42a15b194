// The end of the model: a last normalisation, a score for every byte that may
// come next, and the cross entropy of the one that does.
//
// Only the last rows have targets; what stands before them (an encoder's
// sequence) takes no part.
//
// Thread safety: const methods may run at the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/model_layer_norm.h"
#include "executor/model_parameter.h"

namespace rrfp {

class Head {
 public:
  /// What one microbatch keeps.
  struct Stash {
    LayerNorm::Stash norm;
    Matrix input;                       // F to W: behind the norm
    Matrix chances;                     // F to I: of every byte
    std::vector<std::uint8_t> targets;  // F to I
    Matrix score_gradient;              // I to W
    std::int64_t rows = 0;              // of the stream

    std::int64_t bytes() const {
      return norm.bytes() + bytes_of(input) + bytes_of(chances) + bytes_of(score_gradient) +
             static_cast<std::int64_t>(targets.size());
    }
  };

  explicit Head(const ModelSpec& spec);

  /// The sum over targets of -log(chance). REQUIRES: as many rows as targets,
  /// or more.
  Real forward(const Matrix& input, const std::vector<std::uint8_t>& targets, Stash& stash) const;
  /// Of `scale` times that sum.
  Matrix input_gradient(Real scale, Stash& stash) const;
  void weight_gradient(Stash& stash);

  std::int64_t forward_bytes(std::int64_t targets) const;
  std::int64_t weight_bytes(std::int64_t targets) const;
  void list(ParameterList& parameters);

 private:
  LayerNorm norm_;
  Parameter out_;
};

}  // namespace rrfp
