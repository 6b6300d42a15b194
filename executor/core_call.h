// One call on one of the core's machines, with what it answered: a line of the
// decision log. Plain data; which field means what depends on the call.
#pragma once

#include <array>
#include <cstdint>

#include "scheduler_core/rank_scheduler.h"

namespace rrfp {

struct CoreCall {
  enum class Kind : std::uint8_t {
    kInput,      ///< scheduler: task, other = producer
    kNotice,     ///< scheduler: task, other = producer, value = eta_ns
    kFinished,   ///< scheduler: task, at_ns
    kExpected,   ///< scheduler: other = stage, flag = kind, value = ns
    kDecide,     ///< scheduler: at_ns; action, reason, task, value = until_ns, candidates
    kToldOf,     ///< a notice that the decision before it gave: task, other = to rank, value = eta
    kVote,       ///< vote: other = message, flag = lane; answer = arrived for the group
    kAnnounced,  ///< sequence: task, value = sequence number
    kLaunch,     ///< sequence: answers task, value = sequence number
    kOutput,     ///< credits: other = edge, value = microbatch
    kCredit,     ///< credits: other = edge
    kNext,       ///< credits: other = edge; answers value = microbatch, or -1
  };
  static constexpr std::size_t kCandidates = 4;

  Kind kind = Kind::kInput;
  std::uint8_t flag = 0;
  Decision::Action action = Decision::Action::kIdle;
  WaitReason reason = WaitReason::kNone;
  std::int32_t other = 0;
  TaskId task = kNoTask;
  bool answer = false;
  std::uint8_t candidate_count = 0;
  std::int64_t at_ns = 0;
  std::int64_t value = 0;
  /// The first ready tasks in hint order, before the decision.
  std::array<TaskId, kCandidates> candidates{};

  friend bool operator==(const CoreCall&, const CoreCall&) = default;
};

}  // namespace rrfp
