#include "scheduler_core/admission.h"

#include <algorithm>

namespace rrfp {

AdmissionRule rule_for(const Program& program) {
  if (program.ordered_accumulation()) return AdmissionRule::kOldestFirst;
  for (int stage = 0; stage < program.stages(); ++stage) {
    if (program.predecessors(stage).size() > 1) return AdmissionRule::kOldestFirst;
  }
  return AdmissionRule::kShares;
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
    : limited_(budget_bytes.has_value()),
      rule_(rule_for(program)),
      microbatches_(program.microbatches()),
      budget_bytes_(budget_bytes.value_or(0)) {
  const auto count = static_cast<std::size_t>(microbatches_);
  for (const int stage : program.stages_of(rank)) {
    StageState state;
    state.token_bytes = token_bytes(program, memory.activation_bytes, stage);
    stages_.push_back(state);
    const auto copy = [&](std::span<const std::int64_t> from, std::vector<std::int64_t>& to) {
      if (from.empty()) return;
      const auto rows = from.subspan(static_cast<std::size_t>(stage) * count, count);
      to.insert(to.end(), rows.begin(), rows.end());
    };
    copy(memory.activation_bytes, activation_bytes_);
    copy(memory.weight_stash_bytes.empty() ? memory.activation_bytes : memory.weight_stash_bytes,
         stash_bytes_);
  }
  if (limited_) {
    RRFP_CHECK(budget_bytes_ >= least_budget(program, memory.activation_bytes, rank));
    if (rule_ == AdmissionRule::kOldestFirst) decided_.resize(stages_.size() * count);
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

void Admission::take(int local_stage, int microbatch) {
  StageState& stage = stages_[static_cast<std::size_t>(local_stage)];
  const std::int64_t bytes = activation(local_stage, microbatch);
  if (limited_ && rule_ == AdmissionRule::kOldestFirst) {
    if (token_microbatch(local_stage) == microbatch) {
      stage.token_holder = microbatch;
    } else {
      RRFP_CHECK(bytes <= pool_bytes_);
      pool_bytes_ -= bytes;
    }
    decided_[index(local_stage, microbatch)] = true;
    while (stage.oldest < microbatches_ && decided_[index(local_stage, stage.oldest)]) {
      ++stage.oldest;
    }
  }
  hold(stage, bytes);
  RRFP_CHECK(!limited_ || slack_bytes_ >= 0 || rule_ == AdmissionRule::kOldestFirst);
  peak_bytes_ = std::max(peak_bytes_, held_bytes_);
}

void Admission::release(int local_stage, int microbatch, Release part) {
  StageState& stage = stages_[static_cast<std::size_t>(local_stage)];
  std::int64_t bytes = activation(local_stage, microbatch);
  if (part == Release::kAllButStash) bytes -= stash(local_stage, microbatch);
  if (part == Release::kStash) bytes = stash(local_stage, microbatch);
  hold(stage, -bytes);
  if (!limited_ || rule_ != AdmissionRule::kOldestFirst) return;
  if (stage.token_holder != microbatch) {
    pool_bytes_ += bytes;
  } else if (part != Release::kAllButStash) {
    stage.token_holder = -1;
  }
}

}  // namespace rrfp
