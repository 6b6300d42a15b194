// Sequences cut from a text: which bytes microbatch m of a step gets, and how
// many, is a function of (seed, step, replica, m) and of nothing else.
//
// A sample's decoder sequence stands somewhere in the text, its targets are the
// same bytes one further on, and encoders read what stands right before it.
//
// Thread safety: immutable after create(); share freely.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler_core/result.h"

namespace rrfp {

struct DataSpec {
  int shortest = 64;  ///< positions of a sequence, of every root alike
  int longest = 64;
  std::uint64_t seed = 1;

  friend bool operator==(const DataSpec&, const DataSpec&) = default;
};

/// One microbatch.
struct Sample {
  std::vector<int> lengths;                       ///< by root, decoder's first
  std::vector<std::vector<std::uint8_t>> tokens;  ///< by root
  std::vector<std::uint8_t> targets;              ///< of the decoder's positions
};

class TrainingData {
 public:
  /// `roots`: of the model, see model_cut.h. The error names the field, or says
  /// how long the text has to be.
  static Result<TrainingData> create(std::string text, const DataSpec& spec, int roots);

  int roots() const { return roots_; }
  /// By root, decoder's first.
  std::vector<int> lengths(int step, int replica, int microbatch) const;
  Sample sample(int step, int replica, int microbatch) const;
  /// Of one replica, by position in the arrangement (given index at each
  /// position; empty: as given).
  std::vector<Sample> samples(int step, int replica, int microbatches,
                              std::span<const int> arrangement) const;
  /// Of all microbatches of all replicas.
  std::int64_t targets_of_step(int step, int replicas, int microbatches) const;

 private:
  TrainingData(std::string text, const DataSpec& spec, int roots)
      : text_(std::move(text)), spec_(spec), roots_(roots) {}

  std::string text_;
  DataSpec spec_;
  int roots_;
};

}  // namespace rrfp
