// Which cause a rank that holds no task is idle for: the part of the
// precedence that every engine shares.
#pragma once

#include "scheduler_core/idle_cause.h"
#include "scheduler_core/rank_scheduler.h"

namespace rrfp {

/// `reason` is that of the rank's last decision, `in_flight` counts messages
/// for it that have set out and not arrived, `root_inputs` those it awaits.
/// REQUIRES: scheduler.held() == 0.
inline IdleCause idle_cause_of(const RankScheduler& scheduler, bool in_phase, WaitReason reason,
                               int in_flight, int root_inputs) {
  if (scheduler.finished()) return IdleCause::kDrain;
  if (scheduler.decided() == 0) return IdleCause::kFill;
  if (in_phase) return IdleCause::kRendezvous;
  if (reason == WaitReason::kAnticipation) return IdleCause::kAnticipation;
  if (reason == WaitReason::kOrder) return IdleCause::kOrder;
  if (reason == WaitReason::kMemory) return IdleCause::kMemory;
  if (in_flight > 0) return IdleCause::kCommunication;
  return root_inputs > 0 ? IdleCause::kInput : IdleCause::kUpstream;
}

}  // namespace rrfp
