// The words and keys that reading and writing a case share.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "traces/case.h"
#include "traces/json_cursor.h"

namespace rrfp {

inline constexpr Choice<Backward> kBackwards[] = {
    {"full", Backward::kFull}, {"input", Backward::kInput}, {"none", Backward::kNone}};
inline constexpr Choice<NetworkMode> kModes[] = {{"eager", NetworkMode::kEager},
                                                 {"rendezvous", NetworkMode::kRendezvous},
                                                 {"launch-queue", NetworkMode::kLaunchQueue}};
inline constexpr Choice<Coordination> kCoordinations[] = {{"vote", Coordination::kVote},
                                                          {"leader", Coordination::kLeader}};
inline constexpr Choice<Kind> kMessageKinds[] = {{"F", Kind::kForward}, {"B", Kind::kBackward}};

/// A key of a table by task and the slot that its rows fill.
struct SlotKey {
  std::string_view key;
  Slot slot;
};
inline constexpr std::array<SlotKey, 3> kSplitKeys = {
    {{"F", Slot::kForward}, {"I", Slot::kBackward}, {"W", Slot::kWeight}}};
inline constexpr std::array<SlotKey, 2> kWholeKeys = {
    {{"F", Slot::kForward}, {"B", Slot::kBackward}}};

inline std::span<const SlotKey> duration_keys(bool split_backward) {
  if (split_backward) return kSplitKeys;
  return kWholeKeys;
}

}  // namespace rrfp
