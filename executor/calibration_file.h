// Reads and writes calibrations.
//
// File: {"schema": "rrfp.calibration/1", "workers", "task_extra_ns",
//   "message_extra_ns", "timer_late_ns": {"p50", "p99"}}
// and, where a device worked,
//   "device": {"about", "launch_ns", "flag_ns", "kernel_ns",
//     "contention_permille"},
//   "links": [{"from_rank", "to_rank", "latency_ns", "bytes_per_us"}, ...], each
//     with its "lane" where lanes have links of their own,
//   "payload_limit_bytes", where messages were cut
//
// Thread safety: pure functions but for the files.
#pragma once

#include <string>

#include "executor/calibration.h"
#include "scheduler_core/result.h"
#include "traces/json_value.h"

namespace rrfp {

JsonValue calibration_to_json(const Calibration& calibration);

Result<void> write_calibration_file(const std::string& path, const Calibration& calibration);
Result<Calibration> read_calibration_file(const std::string& path);

}  // namespace rrfp
