// The shape of the training model: a byte-level decoder transformer.
//
// Its weights depend on this and nothing else: neither on how many stages the
// blocks are cut into nor on the number of lanes, so that differently cut
// models start equal.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <cstdint>

#include "scheduler_core/result.h"

namespace rrfp {

/// Every byte is a token.
inline constexpr int kTokens = 256;

struct ModelSpec {
  int width = 32;      ///< numbers per position
  int heads = 4;       ///< of attention; divides width
  int mlp_width = 64;  ///< hidden numbers of a block's MLP
  int blocks = 4;      ///< of the whole model
  int longest = 64;    ///< positions that a root's sequence may have
  int lanes = 1;       ///< split heads and mlp_width; divides both
  std::uint64_t seed = 1;

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// The error names the field, its value and what is allowed.
Result<void> check(const ModelSpec& spec);

/// Which of the lanes' slices of the weights are held: one where lanes are
/// workers of their own, all in a serial run.
struct HeldLanes {
  int first = 0;
  int count = 1;
};

}  // namespace rrfp
