// The choices a user makes about a run: which hint, how binding, how patient.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler_core/task.h"

namespace rrfp {

/// Waiting for a better task that is about to arrive. Both are permille of
/// the expected duration of the task that would start instead.
struct Anticipation {
  std::int64_t reach_permille = 0;  ///< how far ahead an arrival is waited for
  std::int64_t grace_permille = 0;  ///< how long a late arrival is waited for

  friend bool operator==(const Anticipation&, const Anticipation&) = default;
};

/// In which order an iteration's microbatches enter.
enum class Arrangement : std::uint8_t { kGiven, kAscending, kHill };

/// A hint by name, or spelled out.
struct HintSpec {
  std::string name = "bf";               ///< ignored where order is given
  std::vector<std::vector<Task>> order;  ///< per rank; empty: by name
  int group = 0;                         ///< interleaved: microbatches per group; 0: ranks
  std::uint64_t seed = 0;                ///< of hint "random"
};

/// No window: any ready task may start (readiness-first). 1: a pre-committed
/// schedule.
inline constexpr int kNoWindow = 0;

struct Policy {
  HintSpec hint;
  int window = kNoWindow;
  Arrangement arrangement = Arrangement::kGiven;
  std::optional<Anticipation> anticipation;
};

}  // namespace rrfp
