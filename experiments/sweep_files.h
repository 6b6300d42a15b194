// The files that a sweep leaves in its folder, and how one that was cut short
// is taken up again.
//
//   scenario.json   the resolved scenario; of a grid scenario-0.json, ...
//   runs.csv        one row per run: times in ns, memory in bytes
//   summary.csv     one row per point and policy
//   summary.json    the same with its context (rrfp.sweep/1), for programs
//   calibration.json  where worlds are as a calibrated machine would run them
//
// Each is written whole or not at all. Thread safety: one writer per folder.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/output_file.h"
#include "experiments/sweep.h"
#include "experiments/sweep_summary.h"
#include "traces/json_value.h"

namespace rrfp {

inline constexpr std::string_view kSweepSchema = "rrfp.sweep/1";

/// `summaries`: one per point.
JsonValue summary_to_json(const Sweep& sweep,
                          const std::vector<std::vector<PolicySummary>>& summaries);

/// Makes the folder where it is absent: before hours of work, to hear of what
/// is in the way.
Result<void> make_sweep_folder(const std::string& folder);

/// That a sweep into this folder replaces none of its own `inputs`, but by the
/// same. The error names the file.
Result<void> check_sweep_inputs(const std::string& folder, const Sweep& sweep,
                                std::span<const NamedFile> inputs);

/// Says whether the folder is free for this sweep: it holds none, or one of the
/// same worlds. The error names both, and how to go on.
Result<void> check_sweep_folder(const std::string& folder, const Sweep& sweep);

/// Writes all of the above in place of any sweep that is there, and makes the folder where it is
/// absent.
Result<void> write_sweep(const std::string& folder, const Sweep& sweep,
                         const std::vector<std::vector<PolicySummary>>& summaries);

/// Fills in what the folder's runs.csv holds. The error says that the folder
/// holds no sweep, or one of another scenario.
Result<void> resume_sweep(const std::string& folder, Sweep& sweep);

}  // namespace rrfp
