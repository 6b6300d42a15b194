// The schedules of a sweep, made once for all points that have the same: a grid
// mostly changes times and networks, which schedules do not look at.
//
// Invariants
//  1. What get() gives depends on its arguments alone, not on what is kept.
//  2. No more than `most_tasks` tasks are kept, or one schedule; what was asked
//     for longest ago goes first.
//
// Thread safety: all calls by any thread. A schedule is made without a lock, so
// that two threads may make the same one at a time, and nobody waits.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "scheduler_core/policy.h"
#include "scheduler_core/program.h"
#include "scheduler_core/result.h"
#include "scheduler_core/schedule.h"

namespace rrfp {

class ScheduleCache {
 public:
  explicit ScheduleCache(std::int64_t most_tasks) : most_tasks_(most_tasks) {}

  /// The error is make_fitted_schedule's. REQUIRES: the hint does not look at times.
  Result<std::shared_ptr<const FittedSchedule>> get(const HintSpec& hint, const Program& program);

  std::int64_t kept_tasks() const;

 private:
  struct Entry {
    HintSpec hint;
    std::shared_ptr<const FittedSchedule> schedule;
  };

  /// Moved to the front; null where it is not kept. REQUIRES: mutex_ is held.
  std::shared_ptr<const FittedSchedule> find(const HintSpec& hint, const Program& program);

  const std::int64_t most_tasks_;
  mutable std::mutex mutex_;  // guards the members below
  std::list<Entry> entries_;  // what was asked for last is first
  std::int64_t tasks_ = 0;
};

}  // namespace rrfp
