// A calibration for people, and the option with which commands that simulate
// take one.
//
// Thread safety: pure functions but for the file.
#pragma once

#include <optional>
#include <string>

#include "executor/calibration.h"
#include "experiments/options.h"
#include "scheduler_core/result.h"

namespace rrfp {

inline constexpr OptionRow kCalibrationRow = {
    "calibration", "FILE", "as the machine would that `rrfp calibrate --out FILE` measured",
    OptionRow::Alike::kValue, OptionRow::File::kRead};

/// That of --calibration, where it is given.
Result<std::optional<Calibration>> calibration_of(const Options& options);

/// All figures, with a table of links; `transport`: over what it was made.
std::string describe_calibration(const Calibration& calibration, const std::string& transport);

/// "a task takes 40 us longer, a message 72 us".
std::string calibration_line(const Calibration& calibration);
/// What was measured of the device and its links, in lines; empty: nothing.
std::string device_lines(const Calibration& calibration);

/// What an output says that used it: a line that names the file, or nothing.
std::string calibration_note(const Options& options, const std::optional<Calibration>& calibration);

}  // namespace rrfp
