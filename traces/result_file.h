// Reads and writes result files (rrfp.result/1).
//
// Thread safety: pure functions but for the files.
#pragma once

#include <string>

#include "scheduler_core/result.h"
#include "traces/json_reader.h"
#include "traces/json_writer.h"
#include "traces/simulation_result.h"

namespace rrfp {

inline constexpr std::string_view kResultSchema = "rrfp.result/1";

/// Idle causes of 0 ns are left out, and the two that are written as
/// "communication" are one. Instants of decisions and the record of messages
/// are not part of the format.
JsonValue result_to_json(const SimulationResult& result);

Result<void> write_result_file(const std::string& path, const SimulationResult& result,
                               JsonLayout layout = JsonLayout::kCompact);

/// What a file leaves out of a rank (busy_ns, peaks, idle_ns) is 0, so that
/// files with expected results may give only what is checked.
Result<SimulationResult> read_result(const JsonDocument& document);

Result<SimulationResult> read_result_file(const std::string& path, const JsonOptions& options = {});

}  // namespace rrfp
