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

/// A SEND or RECV that stands between the tasks of an order. Runtimes that take
/// such orders post communication there (launch-queue mode); elsewhere it
/// changes nothing.
struct OrderedMessage {
  int position = 0;  ///< it stands before the task at this position; size: at the end
  bool sends = true;
  Kind tensor = Kind::kForward;  ///< kForward: the activation, kBackward: the gradient
  int stage = 0;                 ///< that sends, or receives, it
  int microbatch = 0;

  friend bool operator==(const OrderedMessage&, const OrderedMessage&) = default;
};

/// A hint by name, or spelled out.
struct HintSpec {
  std::string name = "bf";               ///< with an order: what it is called, or ""
  std::vector<std::vector<Task>> order;  ///< per rank; empty: by name
  int group = 0;                         ///< interleaved: microbatches per group; 0: ranks
  std::uint64_t seed = 0;                ///< of hint "random"
  /// Per rank, in the order in which they stand; empty: the order says nothing.
  std::vector<std::vector<OrderedMessage>> messages{};

  friend bool operator==(const HintSpec&, const HintSpec&) = default;
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
