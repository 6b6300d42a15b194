// When may an F start without the rank running out of activation memory or
// into a deadlock. I, W and B are always admissible.
//
// Two rules, decided by the program (see rule_for):
//  shares        admissible if, counting it in, the sum over the rank's stages
//                of max(bytes held by the stage, its token) is within budget.
//  oldest first  each stage owns a token that only its lowest microbatch not
//                yet decided may take; the rest of the budget is a pool.
// token(s) is the largest activation of stage s.
//
// Invariants
//  1. The bytes held never exceed the budget.
//  2. Shares: the sum of max(held, token) never exceeds the budget.
//  3. Every byte taken is given back by the time the last task of its stage
//     and microbatch has finished.
//
// No allocation after construction. Not thread safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "scheduler_core/fixed_array.h"
#include "scheduler_core/program.h"

namespace rrfp {

/// Bytes by stage: [stage * microbatches + microbatch] over the whole program.
struct MemoryModel {
  std::span<const std::int64_t> activation_bytes;    ///< empty: nothing is held
  std::span<const std::int64_t> weight_stash_bytes;  ///< empty: activation_bytes
};

enum class AdmissionRule : std::uint8_t { kShares, kOldestFirst };

AdmissionRule rule_for(const Program& program);

/// The largest activation of a stage; 0 where `activation_bytes` is empty.
std::int64_t token_bytes(const Program& program, std::span<const std::int64_t> activation_bytes,
                         int stage);

/// The least budget that works for a rank: the sum of its stages' tokens.
std::int64_t least_budget(const Program& program, std::span<const std::int64_t> activation_bytes,
                          int rank);

/// What a finish gives back: B, I without a W, and F of a frozen stage
/// everything; I before a W all but the weight stash, W the rest.
enum class Returns : std::uint8_t { kNothing, kEverything, kAllButStash, kStash };

/// REQUIRES: program.exists(task).
Returns returned_by(const Program& program, TaskId task);

class Admission {
 public:
  /// `stages` of `rank` are numbered 0, 1, ... in ascending order ("local
  /// stage"). REQUIRES: budget, where there is one, >= least_budget.
  Admission(const Program& program, int rank, const MemoryModel& memory,
            std::optional<std::int64_t> budget_bytes);

  /// Back to the start of an iteration.
  void reset();

  bool limited() const { return limited_; }
  AdmissionRule rule() const { return rule_; }

  /// The largest activation that fits at this stage for any microbatch.
  /// REQUIRES: limited().
  std::int64_t room(int local_stage) const {
    if (rule_ == AdmissionRule::kOldestFirst) return pool_bytes_;
    if (lone_) return budget_bytes_ - held_bytes_;
    const StageState& stage = stages_[local_stage];
    return slack_bytes_ + std::max(stage.held_bytes, stage.token_bytes) - stage.held_bytes;
  }

  /// The one microbatch that may take the stage's token now, or -1.
  /// REQUIRES: limited().
  int token_microbatch(int local_stage) const {
    if (rule_ == AdmissionRule::kShares) return -1;
    const StageState& stage = stages_[local_stage];
    return stage.token_holder < 0 && stage.oldest < microbatches_ ? stage.oldest : -1;
  }

  /// May F of this stage and microbatch start now?
  bool admits(int local_stage, int microbatch) const {
    return !limited_ || activation(local_stage, microbatch) <= room(local_stage) ||
           token_microbatch(local_stage) == microbatch;
  }

  /// An F was decided. REQUIRES: admits().
  void take(int local_stage, int microbatch) {
    if (oldest_first_) take_oldest_first(local_stage, microbatch);
    hold(stages_[local_stage], activation(local_stage, microbatch));
    RRFP_CHECK(held_bytes_ <= budget_bytes_);
    peak_bytes_ = std::max(peak_bytes_, held_bytes_);
  }

  /// A task finished that gives back `part` of what its F took.
  void give_back(int local_stage, int microbatch, Returns part) {
    StageState& stage = stages_[local_stage];
    std::int64_t bytes = stage.returned_bytes[static_cast<int>(part)];
    if (!stage.uniform) bytes = returned_bytes(local_stage, microbatch, part);
    hold(stage, -bytes);
    if (oldest_first_) {
      give_back_oldest_first(local_stage, microbatch, bytes, part);
    }
  }

  /// True where every F of the stage takes the same.
  bool uniform(int local_stage) const { return stages_[local_stage].uniform; }
  std::int64_t activation(int local_stage, int microbatch) const {
    const StageState& stage = stages_[local_stage];
    return stage.uniform ? stage.activation_bytes
                         : activation_bytes_[index(local_stage, microbatch)];
  }
  std::int64_t held_bytes() const { return held_bytes_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  struct StageState {
    bool uniform = true;
    std::int64_t activation_bytes = 0;    // where uniform
    std::int64_t returned_bytes[4] = {};  // by Returns, where uniform
    std::int64_t token_bytes = 0;
    std::int64_t held_bytes = 0;
    int token_holder = -1;  // oldest first: the microbatch that took the token
    int oldest = 0;         // oldest first: the lowest microbatch not yet decided
  };

  void take_oldest_first(int local_stage, int microbatch);
  void give_back_oldest_first(int local_stage, int microbatch, std::int64_t bytes, Returns part);
  std::int64_t returned_bytes(int local_stage, int microbatch, Returns part) const;
  int index(int local_stage, int microbatch) const {
    return local_stage * microbatches_ + microbatch;
  }
  // Adds `bytes` (which may be negative) to what the stage holds.
  void hold(StageState& stage, std::int64_t bytes) {
    held_bytes_ += bytes;
    if (lone_) return;
    const std::int64_t before = std::max(stage.held_bytes, stage.token_bytes);
    stage.held_bytes += bytes;
    slack_bytes_ += before - std::max(stage.held_bytes, stage.token_bytes);
  }

  FixedArray<StageState> stages_;
  std::int64_t slack_bytes_ = 0;  // budget - sum over stages of max(held, token)
  std::int64_t held_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t budget_bytes_ = 0;  // without a budget, more than any sum
  std::int64_t pool_bytes_ = 0;    // oldest first: what is free in the pool
  bool limited_ = false;
  bool oldest_first_ = false;  // the rule, and there is a budget
  // One stage, and shares: then what is free is the budget less what is held,
  // and neither is kept by stage.
  bool lone_ = false;
  AdmissionRule rule_ = AdmissionRule::kShares;
  int microbatches_ = 0;
  FixedArray<std::int64_t> activation_bytes_;  // [local stage][microbatch]
  FixedArray<std::int64_t> stash_bytes_;
  FixedArray<bool> decided_;  // oldest first: [local stage][microbatch]
};

}  // namespace rrfp
