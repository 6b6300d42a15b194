// Why a rank is idle: the ten causes, looked at after every instant.
#include <algorithm>

#include "tests/model/reference_run.h"

namespace rrfp::model {

void ReferenceRun::sample_causes() {
  Sample sample;
  sample.at_ns = now_ns_;
  for (int rank = 0; rank < program().ranks(); ++rank) sample.causes.push_back(cause_of(rank));
  samples_.push_back(std::move(sample));
}

std::optional<IdleCause> ReferenceRun::cause_of(int rank) const {
  const RankState& self = rank_state(rank);
  for (const TaskId id : self.held) {
    if (state(id).start_ns <= now_ns_) return std::nullopt;
  }
  if (self.held.empty() && self.started.size() == hint(rank).size()) return IdleCause::kDrain;
  if (self.started.empty()) return IdleCause::kFill;
  if (is(Mutant::kCauseFillUntilStart) && state(self.started.front()).start_ns > now_ns_) {
    return IdleCause::kFill;
  }
  if (!self.held.empty()) return IdleCause::kDispatch;
  if (!self.phase.empty()) return IdleCause::kRendezvous;
  if (self.anticipating) return IdleCause::kAnticipation;
  return cause_of_waiting(rank);
}

IdleCause ReferenceRun::cause_of_waiting(int rank) const {
  bool blocked_forward = false;
  bool startable_outside = false;
  for (const TaskId id : hint(rank)) {
    if (state(id).decided || !is_ready(id)) continue;
    if (!in_window(id)) {
      startable_outside |= is_admissible(id);
      blocked_forward |= is(Mutant::kCauseMemoryAnywhere) && !is_admissible(id);
    } else {
      blocked_forward |= !is_admissible(id);
    }
  }
  if (startable_outside) return IdleCause::kOrder;
  if (blocked_forward) return IdleCause::kMemory;
  if (is(Mutant::kCauseInputBeforeComm) && has_root_waiting(rank)) return IdleCause::kInput;
  if (has_message_in_flight(rank)) return IdleCause::kCommunication;
  if (has_root_waiting(rank)) return IdleCause::kInput;
  return IdleCause::kUpstream;
}

bool ReferenceRun::has_message_in_flight(int rank) const {
  for (const auto& [key, message] : messages_) {
    if (!message.in_flight || program().edge(key.first).to_rank != rank) continue;
    if (is(Mutant::kCauseTransmissionOnly) &&
        message.sent_ns + case_.busy_ns(key.first, key.second) <= now_ns_) {
      continue;
    }
    return true;
  }
  return false;
}

bool ReferenceRun::has_root_waiting(int rank) const {
  for (const TaskId id : hint(rank)) {
    if (program().slot_of(id) != Slot::kForward || state(id).decided) continue;
    if (!program().predecessors(program().stage_of(id)).empty()) continue;
    if (is(Mutant::kCauseInputInWindow) && !in_window(id)) continue;
    if (case_.input_ready_ns(program().microbatch_of(id)) > now_ns_) return true;
  }
  return false;
}

}  // namespace rrfp::model
