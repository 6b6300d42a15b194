#include "experiments/schedule_cache.h"

#include <algorithm>
#include <utility>

namespace rrfp {

std::shared_ptr<const FittedSchedule> ScheduleCache::find(const HintSpec& hint,
                                                          const Program& program) {
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.hint == hint && entry.schedule->program.spec() == program.spec();
  });
  if (same == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, same);
  return entries_.front().schedule;
}

Result<std::shared_ptr<const FittedSchedule>> ScheduleCache::get(const HintSpec& hint,
                                                                 const Program& program) {
  {
    const std::lock_guard lock(mutex_);
    if (std::shared_ptr<const FittedSchedule> kept = find(hint, program)) return kept;
  }
  Result<FittedSchedule> made = make_fitted_schedule(hint, program);
  if (!made.ok()) return made.error();
  auto schedule = std::make_shared<const FittedSchedule>(*std::move(made));
  const std::lock_guard lock(mutex_);
  if (std::shared_ptr<const FittedSchedule> kept = find(hint, program)) return kept;
  entries_.push_front({hint, schedule});
  tasks_ += program.task_ids();
  while (tasks_ > most_tasks_ && entries_.size() > 1) {
    tasks_ -= entries_.back().schedule->program.task_ids();
    entries_.pop_back();
  }
  return std::shared_ptr<const FittedSchedule>(std::move(schedule));
}

std::int64_t ScheduleCache::kept_tasks() const {
  const std::lock_guard lock(mutex_);
  return tasks_;
}

}  // namespace rrfp
