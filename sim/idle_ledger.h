// Attributes every idle nanosecond of every rank to one cause.
//
// A rank that holds a decided task is busy, or between a decision and its
// start; both are known when it decides. What remains are the stretches in
// which it holds nothing. Their cause can only change at an event of the rank
// or when a message for it sets out, so it is looked at again just then.
//
// Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler_core/idle_cause.h"

namespace rrfp {

class IdleLedger {
 public:
  explicit IdleLedger(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {}

  /// Back to time 0, every rank idle. Nothing from `clip_ns` on is counted.
  void reset(std::int64_t clip_ns);

  /// From `now_ns` on, `rank` holds nothing, and this is why.
  void idle(int rank, IdleCause cause, std::int64_t now_ns);

  /// At `now_ns` the rank decided a task that starts at `start_ns` and ends at
  /// `end_ns`, after the one before it, if any, ends at `previous_end_ns`.
  void decided(int rank, std::int64_t now_ns, std::int64_t previous_end_ns, std::int64_t start_ns,
               std::int64_t end_ns);

  /// The iteration ended at `end_ns`.
  void close(std::int64_t end_ns);

  const IdleTimes& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)].times_ns; }

 private:
  struct Rank {
    IdleTimes times_ns{};
    std::int64_t since_ns = 0;  // from here on nothing is attributed yet
    IdleCause cause = IdleCause::kFill;
  };

  void attribute(Rank& rank, IdleCause cause, std::int64_t until_ns);

  std::vector<Rank> ranks_;
  std::int64_t clip_ns_ = 0;
};

}  // namespace rrfp
