// Makes the decisions of a run again: feeds the calls of a decision log to
// fresh machines of the core, and compares every answer.
//
// Thread safety: pure function but for the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"

namespace rrfp {

struct ReplayReport {
  std::int64_t iterations = 0;
  std::int64_t calls = 0;
  std::int64_t decisions = 0;
  /// The first answer that differs: where, what the log says, what the core
  /// says now. None where all are identical.
  std::optional<std::string> difference;
  /// Where the log ends too early, for its run was killed; what it holds of
  /// that iteration was compared.
  std::optional<std::string> cut;
};

/// The error names path, line and what cannot be read, or a log that was cut
/// anywhere but at its end.
Result<ReplayReport> replay_decision_log(const std::string& path);

/// The same of a log in memory; `name` stands for its path.
Result<ReplayReport> replay_decisions(std::string_view log, const std::string& name);

}  // namespace rrfp
