// What a run did, as a table for people.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "traces/case.h"
#include "traces/simulation_result.h"

namespace rrfp {

/// "rendezvous".
std::string_view mode_name(NetworkMode mode);

/// One line: shape, policy, network.
std::string describe_case(const Case& given);
/// "zb-h2, window 1, anticipation 0.75/0.5".
std::string describe_policy(const Policy& policy);

/// The line that says where a launch-queue run took its message_ns from.
std::string message_note(std::int64_t message_ns);

/// Per rank: tasks, busy and idle time by cause, peaks; then the makespan.
std::string describe_result(const SimulationResult& result);

/// One run under several network modes, side by side.
struct ModeRun {
  NetworkMode mode = NetworkMode::kEager;
  int window = kNoWindow;
  SimulationResult result;
};
std::string compare_modes(std::span<const ModeRun> runs);

}  // namespace rrfp
