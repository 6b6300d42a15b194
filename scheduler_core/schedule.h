// A schedule is, for each rank, a total order of its tasks. Used with a
// window of 1 it is a pre-committed schedule, without a window it is a hint:
// a ranking of whatever is ready.
//
// Every named schedule is one row of the table in schedule.cc; adding one
// touches that row and one file (schedules_*.cc, hints.cc).
//
// Overlapped pairs (a forward and a backward that run as one, as in DualPipe)
// would be two neighbours in the order, the forward first, with the position
// of the first listed in a member `pairs` ([rank], ascending) beside `ranks`.
// A reader that does not know pairs then runs the two one after the other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_core/policy.h"
#include "scheduler_core/program.h"
#include "scheduler_core/result.h"

namespace rrfp {

struct Schedule {
  std::vector<std::vector<Task>> ranks;  ///< [rank][position]

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// What a generator may look at besides the program.
struct ScheduleContext {
  const HintSpec* hint = nullptr;
  /// By TaskId, in ns; empty where the durations are not known. A fused B
  /// has its whole length at its own id.
  std::span<const std::int64_t> expected_ns;
  /// By EdgeId, mean expected ns from finish to arrival; empty: 0.
  std::span<const std::int64_t> expected_transfer_ns;
};

/// One named schedule: what it needs is checked by `make`, whose error says
/// which shape is allowed.
struct ScheduleEntry {
  std::string_view name;
  std::string_view summary;  ///< one line for `rrfp schedule --help`
  Result<Schedule> (*make)(const Program& program, const ScheduleContext& context);
  bool looks_at_times = false;  ///< without it, `make` is shown none
};

/// All named schedules, in the order in which help lists them.
std::span<const ScheduleEntry> schedule_table();

/// The schedule that `hint` names or spells out; one that is spelled out is
/// taken as it stands (fit_program checks it). The error of an unknown name
/// lists the known ones, nearest first; a group or seed that the schedule does
/// not take is an error too.
Result<Schedule> make_schedule(const HintSpec& hint, const Program& program,
                               const ScheduleContext& context = {});

/// Whether the schedule depends on expected times, beyond hint and program.
bool looks_at_times(const HintSpec& hint);

/// `program`, with each backward that `schedule` names B in a split program
/// fused into one task. The error names a stage and microbatch that has both
/// B and I or W, or a task that is missing, repeated, or on the wrong rank.
Result<Program> fit_program(const Program& program, const Schedule& schedule);

/// A schedule, and the program with the backwards that it fuses.
struct FittedSchedule {
  Schedule schedule;
  Program program;
};

/// make_schedule, then fit_program.
Result<FittedSchedule> make_fitted_schedule(const HintSpec& hint, const Program& program,
                                            const ScheduleContext& context = {});

}  // namespace rrfp
