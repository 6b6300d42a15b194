// A case made ready to run: arranged, its hint spelled out, fused backwards
// given their length, and every time an engine needs looked up by a dense
// index. Checks whatever a case can have wrong that its reader cannot see.
//
// Tables are by TaskId, or by message: [EdgeId * microbatches + microbatch].
// What many cases of one scenario have alike, they can share (SharedParts).
// Thread safety: immutable after create(); share freely.
#pragma once

#include <memory>
#include <vector>

#include "scheduler_core/rank_scheduler.h"
#include "scheduler_core/schedule.h"
#include "traces/case.h"
#include "traces/message_tables.h"

namespace rrfp {

/// When the input of an F of a root stage is there.
struct RootInput {
  std::int64_t time_ns = 0;
  TaskId task = kNoTask;

  friend bool operator==(const RootInput&, const RootInput&) = default;
};

class PreparedCase;

/// What need not be made again for a case like others.
struct SharedParts {
  /// Of the policy's hint and the program of the case; null: made anew.
  /// REQUIRES: the hint does not look at times.
  std::shared_ptr<const FittedSchedule> schedule;
  /// Its tables of messages are taken where they would come out the same.
  const PreparedCase* like = nullptr;
};

class PreparedCase {
 public:
  /// On the heap, since schedulers point into it.
  static Result<std::unique_ptr<const PreparedCase>> create(const Case& input,
                                                            const SharedParts& shared = {});

  const Case& input() const { return case_; }  ///< as arranged
  /// With fused backwards.
  const Program& program() const { return fitted_->program; }
  const Schedule& schedule() const { return fitted_->schedule; }
  /// The given index at each position; empty where that is the given order.
  const std::vector<int>& arrangement() const { return arrangement_; }

  const std::vector<std::int64_t>& duration_ns() const { return duration_ns_; }
  const std::vector<std::int64_t>& expected_ns() const { return expected_ns_; }
  /// Mean of expected_ns over the tasks of the same stage and slot: what a
  /// microbatch of mean cost is expected to take.
  std::int64_t mean_expected_ns(TaskId task) const;

  const std::vector<std::int64_t>& message_bytes() const { return messages_->bytes; }
  const std::vector<std::int64_t>& busy_ns() const { return messages_->busy_ns; }
  const std::vector<std::int64_t>& group_latency_ns() const { return messages_->group_latency_ns; }
  const std::vector<std::int64_t>& slowest_latency_ns() const {
    return messages_->slowest_latency_ns;
  }
  const std::vector<std::int64_t>& expected_transfer_ns() const {
    return messages_->expected_transfer_ns;
  }
  /// Latency of one lane. REQUIRES: 0 <= lane < lanes.
  std::int64_t lane_latency_ns(EdgeId edge, int lane, int microbatch) const {
    return rrfp::lane_latency_ns(case_, edge, lane, microbatch);
  }

  /// Vote and announcement cost nothing with one lane, or in rendezvous mode.
  std::int64_t vote_ns() const { return vote_ns_; }
  std::int64_t start_delay_ns() const { return start_delay_ns_; }
  bool leader_decides_alone() const { return rrfp::leader_decides_alone(case_); }

  /// The inputs of a rank's root stages, by time, then stage and microbatch.
  std::span<const RootInput> root_inputs(int rank) const {
    return root_inputs_[static_cast<std::size_t>(rank)];
  }

  /// What a rank's scheduler is told. Its spans point into this object.
  RankSchedulerConfig scheduler_config(int rank) const;

 private:
  PreparedCase(Case input, std::vector<int> arrangement);
  Result<void> prepare(const SharedParts& shared);
  Result<std::shared_ptr<const FittedSchedule>> fitted_schedule() const;
  void build_root_inputs();
  std::vector<std::int64_t> with_fused(const std::vector<std::int64_t>& by_task) const;

  Case case_;
  std::vector<int> arrangement_;
  std::shared_ptr<const FittedSchedule> fitted_;
  std::shared_ptr<const MessageTables> messages_;
  std::vector<std::int64_t> duration_ns_;
  std::vector<std::int64_t> expected_ns_;
  std::vector<std::vector<RootInput>> root_inputs_;  // by rank
  std::int64_t vote_ns_ = 0;
  std::int64_t start_delay_ns_ = 0;
};

/// A scheduler made from either, of any rank, would decide alike: only what
/// happens to it may differ (durations, latencies, instants of inputs).
bool same_for_schedulers(const PreparedCase& a, const PreparedCase& b);

/// `input` with its microbatches renumbered as its policy asks, and the given
/// index at each position (empty where nothing changes).
std::pair<Case, std::vector<int>> arranged(const Case& input);

}  // namespace rrfp
