// What a run of a case did: the content of a result file (rrfp.result/1).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler_core/idle_cause.h"
#include "scheduler_core/program.h"
#include "scheduler_core/task.h"

namespace rrfp {

struct RankResult {
  std::vector<Task> order;               ///< as started
  std::vector<std::int64_t> decided_ns;  ///< of order[i]; memory is taken then
  std::vector<std::int64_t> start_ns;    ///< of order[i]
  std::vector<std::int64_t> end_ns;
  std::int64_t busy_ns = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t peak_inbox_bytes = 0;
  IdleTimes idle_ns{};  ///< sums to makespan - busy; all 0 where not asked for
};

/// One message over a link, from its producer's finish to its arrival for the
/// group. In rendezvous
/// mode it is sent when both ends have posted it.
struct MessageRecord {
  EdgeId edge = 0;
  int microbatch = 0;
  std::int64_t finish_ns = 0;   ///< its producer's finish
  std::int64_t sent_ns = 0;     ///< transmission starts
  std::int64_t arrival_ns = 0;  ///< arrived for the group
};

struct SimulationResult {
  bool completed = true;
  std::int64_t makespan_ns = 0;
  /// The given index at each position; empty where it is the given order.
  std::vector<int> arrangement;
  /// For each rank with work left, the first not-yet-started task of its
  /// hint; empty where completed.
  std::vector<Task> blocked;
  std::vector<RankResult> ranks;
  std::vector<MessageRecord> messages;  ///< in order of finish; empty where not asked for
};

}  // namespace rrfp
