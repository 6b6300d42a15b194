// What a fit is made from: a recorded job brought to durations, transfers, its
// order, and what stands around its pipeline.
//
// As in a replay (sim/replay_case.h) launch delay is left out: only how long
// tasks and transfers take counts, not when they were recorded.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiments/duration_table.h"
#include "scheduler_core/program.h"
#include "scheduler_core/result.h"
#include "traces/trace_source.h"

namespace rrfp {

struct FitObservations {
  explicit FitObservations(Program of_one_replica) : program(std::move(of_one_replica)) {}

  /// Its backward is split where the trace splits every backward.
  Program program;
  bool merged_backwards = false;  ///< some were recorded as I and W, some as B: all became B
  int lanes = 1;                  ///< of which the slowest counts
  DurationTable durations;
  std::vector<std::vector<std::int64_t>> transfers_ns;  ///< by EdgeId of `program`
  /// By EdgeId: the mean of what was recorded, of all iterations; 0: nothing was.
  std::vector<std::int64_t> message_bytes;
  std::int64_t lost_transfers = 0;  ///< messages that must have been and were not recorded

  std::vector<std::vector<Task>> order;  ///< by rank, of the first replica and iteration
  std::int64_t other_orders = 0;         ///< replicas of iterations with another one
  std::string schedule;                  ///< its name; empty: it has none

  // By iteration that was used.
  std::vector<std::int64_t> measured_ns;
  std::vector<std::int64_t> replay_ns;

  // Means over the iterations, see ReplayFrame.
  std::int64_t head_ns = 0;                    ///< before the first task
  std::vector<std::int64_t> gradient_sync_ns;  ///< by stage: what collectives add at the end
  std::int64_t optimizer_ns = 0;               ///< what ranks add at the end by themselves
  std::int64_t around_sd_ns = 0;               ///< standard deviation of all three together

  DroppedRecords dropped;  ///< iterations that lack a task or hold it twice
};

/// Goes through the trace once, an iteration in memory at a time. The error is
/// that of the file, or says that no iteration could be used.
Result<FitObservations> observe(TraceSource& source);

/// Collects the durations of cases, replica by replica and iteration by
/// iteration.
class DurationCollector {
 public:
  /// The columns are F, then B, or I and W where `split`, of each stage of
  /// `program` that has them.
  DurationCollector(const Program& program, int replicas);

  /// `duration_ns` is by TaskId of `program`, 0 where there is no such task.
  void add(std::span<const std::int64_t> duration_ns);

  /// Where not `split`, I and W are added up to B. Iterations of which not all
  /// replicas were added are left out.
  DurationTable table(bool split) const;

 private:
  const std::vector<std::int64_t>& of(int stage, Slot slot) const {
    return ns_[static_cast<std::size_t>(stage * kSlots + static_cast<int>(slot))];
  }

  const Program& program_;
  int replicas_;
  std::vector<std::vector<std::int64_t>> ns_;  ///< [stage][slot], then by row
};

}  // namespace rrfp
