// What this machine adds to the times of a scenario: measured in the same job,
// and added to a case before the simulator predicts a run of it.
//
// File: {"schema": "rrfp.calibration/1", "workers", "task_extra_ns",
// "message_extra_ns", "timer_late_ns": {"p50", "p99"}}
//
// Thread safety: pure functions but for the file and probe_timers.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "executor/realised_case.h"
#include "scheduler_core/result.h"
#include "traces/case.h"

namespace rrfp {

struct Calibration {
  int workers = 0;                    ///< how many ran at a time
  std::int64_t task_extra_ns = 0;     ///< mean, of each task
  std::int64_t message_extra_ns = 0;  ///< mean, of each message
  std::int64_t timer_p50_ns = 0;      ///< how late a timer is seen
  std::int64_t timer_p99_ns = 0;

  friend bool operator==(const Calibration&, const Calibration&) = default;
};

/// Above this a prediction is void: the machine is too noisy.
inline constexpr std::int64_t kMostTimerLateNs = 300'000;

/// Means without the largest hundredth, which is noise of the machine.
Calibration calibrate(const Overheads& overheads);

/// So many threads wait for timers of 1 to 2 ms at a time, `count` each.
void probe_timers(int threads, int count, Calibration& to);

/// `input` as this machine is expected to run it.
Case with_calibration(const Case& input, const Calibration& calibration);

Result<void> write_calibration_file(const std::string& path, const Calibration& calibration);
Result<Calibration> read_calibration_file(const std::string& path);

/// The element at permille/1000 of the sorted numbers; 0 of none.
std::int64_t quantile_ns(std::vector<std::int64_t> numbers, int permille);

}  // namespace rrfp
