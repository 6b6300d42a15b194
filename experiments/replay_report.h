// A replay as text for people and as JSON (rrfp.replay/1).
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>

#include "experiments/what_if.h"
#include "sim/replay_analysis.h"
#include "traces/json_value.h"
#include "traces/native_trace.h"

namespace rrfp {

struct ReplayReport {
  std::string file;
  ReplayAnalysis analysis;
  WhatIfOptions options;
  std::optional<WhatIf> what_if;
  std::string no_what_if;  ///< why there is none
};

/// How well the replay reproduces what was measured, and what made it slow.
std::string describe_replay(const TraceHeader& header, const ReplayReport& report);
/// The same, a line per iteration.
std::string describe_steps(const ReplayAnalysis& analysis);
/// Where the time of each rank went in the recorded order.
std::string describe_causes(const WhatIf& what_if);
/// A row per variant, and the bound of perfect balance.
std::string describe_what_if(const ReplayReport& report);

JsonValue replay_to_json(const ReplayReport& report);

}  // namespace rrfp
