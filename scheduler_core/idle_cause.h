// Why a rank is idle. Every idle nanosecond has exactly one cause.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace rrfp {

/// In order of precedence: the first that applies is the cause.
enum class IdleCause : std::uint8_t {
  kDrain,          ///< all its tasks have ended, or it has none
  kFill,           ///< it has decided nothing yet
  kDispatch,       ///< between a decision and its start
  kRendezvous,     ///< in a rendezvous phase or a launch-queue wait
  kAnticipation,   ///< it waits for an announced task
  kOrder,          ///< a ready, admissible task stands outside the window only
  kMemory,         ///< a ready F inside the window is not admissible
  kCommunication,  ///< a message for one of its tasks is in flight
  kInput,          ///< a root task of its own waits for its input
  kUpstream,       ///< another rank has yet to compute
};
inline constexpr int kIdleCauses = 10;

/// The key in result files; kRendezvous is written as "communication" too.
constexpr std::string_view name(IdleCause cause) {
  constexpr std::array<std::string_view, kIdleCauses> kNames = {
      "drain", "fill",   "dispatch",      "communication", "anticipation",
      "order", "memory", "communication", "input",         "upstream"};
  return kNames[static_cast<std::size_t>(cause)];
}

/// Nanoseconds by cause.
using IdleTimes = std::array<std::int64_t, kIdleCauses>;

}  // namespace rrfp
