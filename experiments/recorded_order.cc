#include "experiments/recorded_order.h"

#include <algorithm>
#include <string_view>

#include "scheduler_core/schedule.h"

namespace rrfp {

std::string schedule_name(const Program& program, const std::vector<std::vector<Task>>& order) {
  for (const std::string_view name :
       {"1f1b", "gpipe", "eager-1f1b", "zb-h1", "zb-h2", "interleaved-1f1b", "zb-v"}) {
    HintSpec hint;
    hint.name = name;
    ScheduleContext context;
    context.hint = &hint;
    const Result<Schedule> schedule = make_schedule(hint, program, context);
    if (schedule.ok() && schedule->ranks == order) return std::string(name);
  }
  return "";
}

std::vector<std::int64_t> peak_activations_of(const std::vector<std::vector<Task>>& order) {
  std::vector<std::int64_t> peaks;
  for (const std::vector<Task>& rank : order) {
    std::int64_t held = 0;
    std::int64_t peak = 0;
    for (const Task& task : rank) {
      const bool frees = task.kind == Kind::kWeightGradient || task.kind == Kind::kBackward;
      held += task.kind == Kind::kForward ? 1 : frees ? -1 : 0;
      peak = std::max(peak, held);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace rrfp
