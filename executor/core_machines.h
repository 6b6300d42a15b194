// The core's machines of one worker: its scheduler, its group's vote, its
// announced sequence, the credits of its edges. A thin layer that hands calls
// on and writes them down, so that a run can be explained, and decided again
// from its log.
//
// Invariant: what is written down is enough to make the same calls again on
// machines made from the same case, and to compare every answer.
//
// No allocation after construction where nothing is recorded; with a log the
// list of calls grows. Not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/core_call.h"
#include "executor/grid.h"
#include "scheduler_core/announced_sequence.h"
#include "scheduler_core/arrival_vote.h"
#include "scheduler_core/edge_credits.h"
#include "scheduler_core/rank_scheduler.h"
#include "traces/prepared_case.h"

namespace rrfp {

/// What is the same for all workers and iterations of a run.
struct CoreOptions {
  int credits = 0;              ///< per edge; 0: as many as there are microbatches
  bool adapt_expected = false;  ///< follow measured durations
  bool record = false;          ///< write calls down

  friend bool operator==(const CoreOptions&, const CoreOptions&) = default;
};

class CoreMachines {
 public:
  /// `world` must outlive the machines.
  CoreMachines(const PreparedCase& world, const Place& place, const CoreOptions& options);

  /// Back to the start of an iteration. Running means stay, and so does what
  /// has been recorded.
  void reset();

  /// Goes on with the running means of `before`, the machines of the same worker
  /// in the iteration before, where this one expects other durations.
  void adopt_means(const CoreMachines& before) {
    if (scheduler_ && before.scheduler_) scheduler_->adopt_means(*before.scheduler_);
  }

  /// Lane 0 decides for its group; in rendezvous mode every lane follows its
  /// fixed order by itself.
  bool decides() const { return scheduler_.has_value(); }
  const RankScheduler& scheduler() const { return *scheduler_; }
  bool adapts() const { return options_.adapt_expected; }

  // RankScheduler. REQUIRES: decides().
  void on_input(TaskId task, int producer);
  void on_notice(TaskId task, int producer, std::int64_t eta_ns);
  void on_finished(TaskId task, std::int64_t now_ns);
  void on_expected(int stage, Kind kind, std::int64_t ns);
  Decision decide(std::int64_t now_ns);
  /// Why the last decision of this iteration started nothing; kNone: it started something.
  WaitReason last_reason() const { return last_reason_; }

  /// ArrivalVote, of message edge * microbatches + microbatch.
  /// REQUIRES: lane 0 of a group that votes.
  bool on_lane(EdgeId edge, int microbatch, int lane);
  bool has_vote(EdgeId edge, int microbatch, int lane) const {
    return vote_->has(edge * microbatches_ + microbatch, lane);
  }

  // AnnouncedSequence. REQUIRES: more than one lane, eager.
  void on_announced(std::int64_t sequence, TaskId task);
  bool has_sequence() const { return sequence_.has_value(); }
  TaskId front() const { return sequence_->front(); }
  std::int64_t pop();
  std::int64_t announced() const { return sequence_->announced(); }

  // EdgeCredits, of an activation's edge from this rank to another.
  void on_output(EdgeId edge, int microbatch);
  void on_credit(EdgeId edge);
  int next(EdgeId edge);
  /// Outputs that wait for a credit, on any edge.
  bool any_output_waits() const;

  /// What was recorded since the last call; leaves nothing behind.
  std::vector<CoreCall> take_calls();
  const std::vector<CoreCall>& calls() const { return calls_; }

 private:
  EdgeCredits& credits(EdgeId edge);
  void record(const CoreCall& call) {
    if (options_.record) calls_.push_back(call);
  }

  CoreOptions options_;
  int microbatches_;
  std::optional<RankScheduler> scheduler_;
  std::optional<ArrivalVote> vote_;
  std::optional<AnnouncedSequence> sequence_;
  std::vector<EdgeCredits> credits_;
  std::vector<int> credits_of_;  // by EdgeId; -1: none
  std::vector<CoreCall> calls_;
  WaitReason last_reason_ = WaitReason::kNone;
};

}  // namespace rrfp
