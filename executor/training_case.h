// The case that a step of training runs: a case that says how the pipeline
// looks, with what the model and the step's samples say about every microbatch.
//
// Thread safety: immutable after create(); share freely.
#pragma once

#include <vector>

#include "executor/model_stage.h"
#include "traces/case.h"

namespace rrfp {

class TrainingCases {
 public:
  /// The error says why the program cannot be trained.
  static Result<TrainingCases> create(const ModelSpec& spec, const Program& program);

  int roots() const { return roots_; }

  /// `base` for microbatches of these lengths ([microbatch][root]): bytes of
  /// messages and of stashes as they are. Where there are budgets, each keeps
  /// the proportion to the least that works.
  ///
  /// Not `paced`: durations are those of so many multiplications at
  /// kMultiplyNs, so that costs are known in proportion beforehand. Paced:
  /// those of `base`.
  Case fill(Case base, const std::vector<std::vector<int>>& lengths, bool paced) const;

  /// Of a multiplication and an addition; a nominal rate.
  static constexpr double kMultiplyNs = 0.5;

 private:
  explicit TrainingCases(const ModelSpec& spec) : spec_(spec) {}

  void fill_memory(Case& made, const std::vector<std::vector<int>>& lengths) const;
  void fill_messages(Case& made, const std::vector<std::vector<int>>& lengths) const;
  void fill_durations(Case& made, const std::vector<std::vector<int>>& lengths) const;

  ModelSpec spec_;
  int roots_ = 0;
  std::vector<Stage> stages_;
};

}  // namespace rrfp
