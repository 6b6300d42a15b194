#include "scheduler_core/admission.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace rrfp {

namespace {

bool all_equal(std::span<const std::int64_t> values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

}  // namespace

AdmissionRule rule_for(const Program& program) {
  if (program.ordered_accumulation()) return AdmissionRule::kOldestFirst;
  for (int stage = 0; stage < program.stages(); ++stage) {
    if (program.predecessors(stage).size() > 1) return AdmissionRule::kOldestFirst;
  }
  return AdmissionRule::kShares;
}

Returns returned_by(const Program& program, TaskId task) {
  const int stage = program.stage_of(task);
  const TaskId weight = program.task_id(stage, Slot::kWeight, program.microbatch_of(task));
  switch (program.slot_of(task)) {
    case Slot::kForward:
      return program.backward_of(stage) == Backward::kNone ? Returns::kEverything
                                                           : Returns::kNothing;
    case Slot::kBackward:
      return program.exists(weight) ? Returns::kAllButStash : Returns::kEverything;
    case Slot::kWeight:
      break;
  }
  return Returns::kStash;
}

std::int64_t token_bytes(const Program& program, std::span<const std::int64_t> activation_bytes,
                         int stage) {
  if (activation_bytes.empty()) return 0;
  const auto count = static_cast<std::size_t>(program.microbatches());
  const auto of_stage = activation_bytes.subspan(static_cast<std::size_t>(stage) * count, count);
  return *std::max_element(of_stage.begin(), of_stage.end());
}

std::int64_t least_budget(const Program& program, std::span<const std::int64_t> activation_bytes,
                          int rank) {
  std::int64_t sum = 0;
  for (const int stage : program.stages_of(rank)) {
    sum += token_bytes(program, activation_bytes, stage);
  }
  return sum;
}

Admission::Admission(const Program& program, int rank, const MemoryModel& memory,
                     std::optional<std::int64_t> budget_bytes)
    : stages_(static_cast<int>(program.stages_of(rank).size())),
      budget_bytes_(budget_bytes.value_or(std::numeric_limits<std::int64_t>::max())),
      limited_(budget_bytes.has_value()),
      oldest_first_(limited_ && rule_for(program) == AdmissionRule::kOldestFirst),
      lone_(stages_.size() == 1 && rule_for(program) == AdmissionRule::kShares),
      rule_(rule_for(program)),
      microbatches_(program.microbatches()) {
  const auto count = static_cast<std::size_t>(microbatches_);
  const std::span<const std::int64_t> activations = memory.activation_bytes;
  const std::span<const std::int64_t> stashes =
      memory.weight_stash_bytes.empty() ? activations : memory.weight_stash_bytes;
  if (!activations.empty()) {
    activation_bytes_ = FixedArray<std::int64_t>(stages_.size() * microbatches_);
    stash_bytes_ = FixedArray<std::int64_t>(stages_.size() * microbatches_);
  }
  for (int local = 0; local < stages_.size(); ++local) {
    const int stage = program.stages_of(rank)[static_cast<std::size_t>(local)];
    StageState& state = stages_[local];
    if (!activations.empty()) {
      const std::size_t first = static_cast<std::size_t>(stage) * count;
      const auto activation = activations.subspan(first, count);
      const auto stash = stashes.subspan(first, count);
      state.uniform = all_equal(activation) && all_equal(stash);
      state.activation_bytes = activation.front();
      state.token_bytes = token_bytes(program, activations, stage);
      std::copy(activation.begin(), activation.end(), &activation_bytes_[index(local, 0)]);
      std::copy(stash.begin(), stash.end(), &stash_bytes_[index(local, 0)]);
      for (const Returns part : {Returns::kEverything, Returns::kAllButStash, Returns::kStash}) {
        state.returned_bytes[static_cast<int>(part)] = returned_bytes(local, 0, part);
      }
    }
  }
  if (limited_) {
    RRFP_CHECK(budget_bytes_ >= least_budget(program, memory.activation_bytes, rank));
    if (oldest_first_) {
      decided_ = FixedArray<bool>(stages_.size() * microbatches_);
    }
  }
  reset();
}

void Admission::reset() {
  held_bytes_ = 0;
  peak_bytes_ = 0;
  slack_bytes_ = budget_bytes_;
  for (StageState& stage : stages_) {
    stage.held_bytes = 0;
    stage.token_holder = -1;
    stage.oldest = 0;
    slack_bytes_ -= stage.token_bytes;
  }
  pool_bytes_ = slack_bytes_;
  std::fill(decided_.begin(), decided_.end(), false);
}

void Admission::take_oldest_first(int local_stage, int microbatch) {
  StageState& stage = stages_[local_stage];
  if (token_microbatch(local_stage) == microbatch) {
    stage.token_holder = microbatch;
  } else {
    pool_bytes_ -= activation(local_stage, microbatch);
    RRFP_CHECK(pool_bytes_ >= 0);
  }
  decided_[index(local_stage, microbatch)] = true;
  while (stage.oldest < microbatches_ && decided_[index(local_stage, stage.oldest)]) ++stage.oldest;
}

std::int64_t Admission::returned_bytes(int local_stage, int microbatch, Returns part) const {
  if (activation_bytes_.empty()) return 0;
  const std::int64_t all = activation_bytes_[index(local_stage, microbatch)];
  const std::int64_t stash = stash_bytes_[index(local_stage, microbatch)];
  switch (part) {
    case Returns::kNothing:
      return 0;
    case Returns::kEverything:
      return all;
    case Returns::kAllButStash:
      return all - stash;
    case Returns::kStash:
      break;
  }
  return stash;
}

void Admission::give_back_oldest_first(int local_stage, int microbatch, std::int64_t bytes,
                                       Returns part) {
  StageState& stage = stages_[local_stage];
  if (stage.token_holder != microbatch) {
    pool_bytes_ += bytes;
  } else if (part == Returns::kEverything || part == Returns::kStash) {
    stage.token_holder = -1;
  }
}

}  // namespace rrfp
