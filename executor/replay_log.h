// Makes the decisions of a run again: feeds the calls of a decision log to
// fresh machines of the core, and compares every answer.
//
// Thread safety: pure function but for the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scheduler_core/result.h"

namespace rrfp {

struct ReplayReport {
  std::int64_t iterations = 0;
  std::int64_t calls = 0;
  std::int64_t decisions = 0;
  /// The first answer that differs: where, what the log says, what the core
  /// says now. None where all are identical.
  std::optional<std::string> difference;
};

/// The error names path, line and what cannot be read.
Result<ReplayReport> replay_decision_log(const std::string& path);

}  // namespace rrfp
