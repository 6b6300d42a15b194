// What the runs of one point of a sweep say about its policies.
//
// A comparison is fair at equal memory only. So every policy is told with the
// memory that it came to, held against the baseline's, and compared with the
// fastest fixed order that needs no more of it. Half an activation per rank
// makes no difference: inboxes of two runs are never quite alike.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/statistics.h"
#include "experiments/sweep.h"

namespace rrfp {

enum class MemoryAgainstBaseline : std::uint8_t { kEqual, kLess, kMore };

/// "equal", "less" or "more".
std::string_view word(MemoryAgainstBaseline memory);

/// The memory of a policy: the most that any of its runs came to.
struct PeakMemory {
  std::int64_t bytes = 0;            ///< activations and inbox of the rank with the most
  std::int64_t inbox_bytes = 0;      ///< the inbox of that rank
  std::int64_t all_ranks_bytes = 0;  ///< activations and inboxes of all ranks
};

struct PolicySummary {
  std::string name;
  bool fixed = false;  ///< a pre-committed order (window 1)
  /// Launch-queue, where the latency varies: it met only the mean. Others are
  /// not held against it.
  bool misses_latency_draws = false;
  int runs = 0;
  int blocked = 0;  ///< of the runs; the times below are 0 where any has blocked
  double mean_ns = 0;
  std::int64_t p50_ns = 0;
  std::int64_t p95_ns = 0;
  double idle_share = 0;  ///< of ranks x time, all runs together
  PeakMemory memory;
  MemoryAgainstBaseline against_baseline = MemoryAgainstBaseline::kEqual;
  /// Mean of the baseline over mean of the policy; none where a run blocked.
  std::optional<double> speedup;
  std::optional<Interval> speedup_interval;  ///< from two iterations on
  /// The same over the fastest fixed order within this policy's memory, of those that
  /// met the same draws.
  std::optional<double> speedup_at_memory;
  std::string fixed_at_memory;
};

/// In the order of the scenario; empty where no iteration is done.
std::vector<PolicySummary> summarize(const SweepPoint& point);

}  // namespace rrfp
