// The part of RankScheduler that every simulated task passes through, inline.
// Included by rank_scheduler.h; the rest is in rank_scheduler.cc.
#pragma once

#include <algorithm>

#include "scheduler_core/rank_scheduler.h"

namespace rrfp {

inline void RankScheduler::on_input(TaskId task, int producer) {
  const int local = local_of(task);
  if (anticipating_ && producer != kRootInput) note_arrival(local, producer);
  satisfy(local);
}

inline void RankScheduler::on_finished(TaskId task, [[maybe_unused]] std::int64_t now_ns) {
  const int local = local_of(task);
  RRFP_CHECK(locals_[local].unmet == kDecided);
  --held_;
  const int number = group_of(local);
  const Group& group = groups_[number];
  const int microbatch = local - number * microbatches_;
  const Returns returns = fused_ ? returned_by(*program_, task) : group.returns;
  admission_.give_back(group.local_stage, microbatch, returns);
  if (group.own_dependent >= 0) satisfy(group.own_dependent + microbatch);
  for (int i = 0; i < group.dependents; ++i) {
    satisfy(dependents_[group.first_dependent + i] + microbatch);
  }
  if (ordered_ && next_accumulation_[local] >= 0) satisfy(next_accumulation_[local]);
}

inline void RankScheduler::satisfy(int local) {
  LocalTask& task = locals_[local];
  prefetch_ahead(&task);
  // Neither 0, when it is ready already, nor kDecided.
  RRFP_CHECK(static_cast<std::uint16_t>(task.unmet - 1) < kDecided - 1);
  if (--task.unmet == 0) {
    const int position = static_cast<int>(task.position);
    ReadySet& ready = ready_[static_cast<int>(task.ready_set)];
    if (anticipating_) announced_.erase(position);
    if (!ready.least_bytes.empty()) lower_least(ready, position);
    ready.set.insert(position);
  } else if (task.unmet == task.announced) {
    announced_.insert(static_cast<int>(task.position));
  }
}

// The lowest position among the ready F of a stage that fit for any microbatch.
inline int RankScheduler::first_fitting(int local_stage) const {
  const ReadySet& ready = ready_[1 + local_stage];
  const std::int64_t room = admission_.room(local_stage);
  if (!ready.least_bytes.empty()) return first_fitting_mixed(ready, room);
  const int first = ready.set.first();
  return admission_.activation(local_stage, 0) <= room ? first : size();
}

// The lowest position among ready, admissible tasks.
inline int RankScheduler::first_admissible() const {
  int best = ready_[0].set.first();
  for (int local_stage = 0; local_stage + 1 < ready_.size(); ++local_stage) {
    best = std::min(best, first_fitting(local_stage));
    if (admission_.rule() == AdmissionRule::kOldestFirst) {
      best = std::min(best, token_position(local_stage));
    }
  }
  return best;
}

inline Decision RankScheduler::decide(std::int64_t now_ns) {
  RRFP_CHECK(held_ < queue_depth_);
  ++decisions_;
  const int limit = windowed_ ? window_end() : size();
  const int best = first_admissible();
  Decision decision;
  if (best >= limit) {
    decision.reason = why_idle(best, limit);
    return decision;
  }
  if (anticipating_) {
    if (const std::optional<std::int64_t> until_ns = wait_until(best, now_ns)) {
      decision.action = Decision::Action::kWait;
      decision.reason = WaitReason::kAnticipation;
      decision.until_ns = *until_ns;
      return decision;
    }
  }
  decision.action = Decision::Action::kStart;
  decision.task = start(best, now_ns);
  return decision;
}

inline TaskId RankScheduler::start(int position, std::int64_t now_ns) {
  const int local = local_at_[position];
  prefetch_ahead(&local_at_[position]);
  const int number = group_of(local);
  const Group& group = groups_[number];
  const int microbatch = local - number * microbatches_;
  LocalTask& task = locals_[local];
  ReadySet& ready = ready_[static_cast<int>(task.ready_set)];
  ready.set.erase(position);
  if (!ready.least_bytes.empty()) raise_least(ready, position);
  if (group.forward) admission_.take(group.local_stage, microbatch);
  task.unmet = kDecided;
  if (anticipating_) write_notices(local, now_ns);
  ++held_;
  ++decided_count_;
  return group.first_task + microbatch;
}

}  // namespace rrfp
