// Where a run of schedulers has come to: the part of a result that every
// engine gets from them.
#pragma once

#include <algorithm>
#include <vector>

#include "scheduler_core/rank_scheduler.h"

namespace rrfp {

/// Every task has ended.
inline bool all_finished(const std::vector<RankScheduler>& schedulers) {
  return std::all_of(schedulers.begin(), schedulers.end(),
                     [](const RankScheduler& scheduler) { return scheduler.finished(); });
}

/// For each rank with work left, the first not-yet-started task of its hint.
inline std::vector<Task> undecided_tasks(const Program& program,
                                         const std::vector<RankScheduler>& schedulers) {
  std::vector<Task> tasks;
  for (const RankScheduler& scheduler : schedulers) {
    if (scheduler.decided() == scheduler.size()) continue;
    tasks.push_back(program.task(scheduler.task_at(scheduler.first_undecided())));
  }
  return tasks;
}

}  // namespace rrfp
