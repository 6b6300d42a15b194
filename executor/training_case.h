// The case that a step of training runs: a case that says how the pipeline
// looks, with what the model and the step's samples say about every microbatch.
//
// Thread safety: immutable after create(); share freely.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "executor/model_stage.h"
#include "traces/case.h"

namespace rrfp {

/// What a microbatch of a stage keeps.
struct StashBytes {
  std::int64_t forward = 0;  ///< from F to I
  std::int64_t weight = 0;   ///< from I to W
};

/// How much memory the model takes on a kind of device; as it stands, on a CPU.
struct TrainingFootprint {
  std::int64_t number_bytes = sizeof(Real);
  /// Of microbatches of these lengths, by root; empty: as Stage says.
  std::function<StashBytes(const ModelSpec& spec, const StageCut& cut,
                           std::span<const int> lengths)>
      stash;
};

class TrainingCases {
 public:
  /// The error says why the program cannot be trained.
  static Result<TrainingCases> create(const ModelSpec& spec, const Program& program,
                                      TrainingFootprint footprint = {});

  int roots() const { return roots_; }

  /// `base` for microbatches of these lengths ([microbatch][root]): bytes of
  /// messages and of stashes as they are. Where there are budgets, what fits
  /// those of `base` fits (training_budget.h).
  ///
  /// Not `paced`: durations are those of so many multiplications at
  /// kMultiplyNs, so that costs are known in proportion beforehand. Paced:
  /// those of `base`.
  Case fill(Case base, const std::vector<std::vector<int>>& lengths, bool paced) const;

  /// Of a multiplication and an addition; a nominal rate.
  static constexpr double kMultiplyNs = 0.5;

 private:
  TrainingCases(const ModelSpec& spec, TrainingFootprint footprint)
      : spec_(spec), footprint_(std::move(footprint)) {}

  StashBytes stash_bytes(const Stage& stage, std::span<const int> lengths) const;

  void fill_memory(Case& made, const std::vector<std::vector<int>>& lengths) const;
  void fill_messages(Case& made, const std::vector<std::vector<int>>& lengths) const;
  void fill_durations(Case& made, const std::vector<std::vector<int>>& lengths) const;

  ModelSpec spec_;
  TrainingFootprint footprint_;
  int roots_ = 0;
  std::vector<Stage> stages_;
};

}  // namespace rrfp
