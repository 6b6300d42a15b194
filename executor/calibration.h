// What this machine adds to the times of a scenario: measured by running it,
// and added to a case before the simulator predicts a run of it.
//
//  task:     + task_extra_ns, the mean of what the run's tasks took longer
//  message:  + max(0, link - world) + message_extra_ns
// The first is what the machine's own link takes beyond the world's
// (calibrated_links.h; nothing where links were not measured). Of each message
// of the run it is taken off, and message_extra_ns is the mean of the rest: so
// the two together add what was measured, and nothing twice.
//
// Contention is told and not applied. The length of a synthetic task is
// measured while all partitions are busy (CudaWorkLength), so what partitions
// take from each other is in it already; and what a task would take on such a
// partition with the others idle, which is what the figure could be applied to,
// no command records.
//
// Thread safety: pure functions but for probe_timers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/calibrated_links.h"
#include "executor/device_figures.h"
#include "executor/realised_case.h"
#include "scheduler_core/result.h"
#include "traces/case.h"

namespace rrfp {

struct CalibratedDevice {
  std::string about;  ///< what the device was cut into
  DeviceTimes times;

  friend bool operator==(const CalibratedDevice&, const CalibratedDevice&) = default;
};

struct Calibration {
  int workers = 0;                    ///< how many ran at a time
  std::int64_t task_extra_ns = 0;     ///< mean, of each task
  std::int64_t message_extra_ns = 0;  ///< mean, of each message, beside its link
  std::int64_t timer_p50_ns = 0;      ///< how late a timer is seen
  std::int64_t timer_p99_ns = 0;

  // Of devices that work; an emulated one has neither.
  std::optional<CalibratedDevice> device{};
  std::vector<CalibratedLink> links{};
  /// No more of a message travelled.
  std::optional<std::int64_t> payload_limit_bytes{};

  // Of the run that it was made of; empty: not known.
  std::string job{};        ///< the name of the case or scenario
  std::string transport{};  ///< "threads", "mpi" or "tcp"
  /// How far its iterations lie apart in what a task and a message take longer,
  /// in thousandths of the mean task (spread_permille).
  std::int64_t spread_permille = 0;

  friend bool operator==(const Calibration&, const Calibration&) = default;
};

/// Above these a prediction is void: the machine is too noisy.
inline constexpr std::int64_t kMostTimerLateNs = 300'000;
inline constexpr std::int64_t kMostSpreadPermille = 50;

/// Why no prediction can be made with it, for people; empty: it can.
std::string why_void(const Calibration& calibration);
/// The same where its job has tasks of `mean_task_ns`: shorter ones than what a
/// machine adds to each say how fast the executor is, and nothing of schedules.
std::string why_void(const Calibration& calibration, std::int64_t mean_task_ns);

/// The mean length of the tasks of a case.
std::int64_t mean_task_ns(const Case& input);

/// From the second least to the second largest of `extra_ns`, for one iteration
/// may be held up; of fewer than four, from the least to the largest. In
/// thousandths of `task_ns`.
std::int64_t spread_permille(std::vector<std::int64_t> extra_ns, std::int64_t task_ns);

/// Means without the largest hundredth, which is noise of the machine.
void calibrate(const Overheads& overheads, Calibration& to);

/// So many threads wait for timers of 1 to 2 ms at a time, `count` each.
void probe_timers(int threads, int count, Calibration& to);

/// `input` as this machine is expected to run it; what schedulers expect of it
/// is as before. The error names a link that the calibration lacks, or is that
/// of a network that no run has.
Result<Case> with_calibration(const Case& input, const Calibration& calibration);

/// The element at permille/1000 of the sorted numbers; 0 of none.
std::int64_t quantile_ns(std::vector<std::int64_t> numbers, int permille);

}  // namespace rrfp
