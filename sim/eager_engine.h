// Eager communication in virtual time: message-driven, asynchronous links.
//
// The loop works in rounds. A round is one instant: first all events of the
// instant at every rank, then the decisions of every rank that may decide. A
// decision that causes something at the same instant opens a new round of it.
//
// One pending time per rank is kept in a tournament tree: the end of its
// running task while it can take no other, else the earlier of that and its
// next arrival. What arrives at a rank that cannot decide is looked at when it
// next can; the order of decisions is the same, and most arrivals then cost no
// event of their own.
//
// Invariants
//  1. Time never goes back, and every event of an instant is applied before a
//     decision of that instant.
//  2. Decisions of one round do not see each other: what they send is
//     delivered in a later round.
//
// No allocation in reset() and run() once a first run has sized the buffers.
// Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler_core/arrival_vote.h"
#include "scheduler_core/rank_scheduler.h"
#include "sim/idle_ledger.h"
#include "sim/inbox.h"
#include "sim/next_event_tree.h"
#include "traces/prepared_case.h"
#include "traces/simulation_result.h"

namespace rrfp {

/// What to write down besides the totals.
struct EngineDetail {
  bool tasks = false;     ///< order, decided, start and end of each task
  bool causes = false;    ///< idle causes
  bool messages = false;  ///< MessageRecord of each message
};

class EagerEngine {
 public:
  /// REQUIRES: `prepared` is in eager mode and outlives the engine.
  EagerEngine(const PreparedCase& prepared, const EngineDetail& detail);

  /// Runs one iteration from its start.
  void run();

  bool completed() const;
  std::int64_t makespan_ns() const { return makespan_ns_; }
  std::int64_t busy_ns(int rank) const { return ranks_[static_cast<std::size_t>(rank)].busy_ns; }
  std::int64_t peak_inbox_bytes(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)].peak_inbox_bytes;
  }
  const RankScheduler& scheduler(int rank) const {
    return schedulers_[static_cast<std::size_t>(rank)];
  }
  /// The end of the last task of this stage and slot; 0 where there is none.
  std::int64_t last_end_ns(int stage, Slot slot) const {
    return group_end_ns_[static_cast<std::size_t>(stage * kSlots + static_cast<int>(slot))];
  }

  /// Everything that was written down. REQUIRES: run() has been called.
  SimulationResult result() const;

 private:
  struct HeldTask {
    TaskId task = kNoTask;
    std::int64_t end_ns = 0;
  };
  struct Arrival {
    std::int64_t time_ns = 0;
    TaskId task = kNoTask;
    std::int32_t producer = 0;  // stage, or RankScheduler::kRootInput
    std::int32_t message = -1;  // of the rank's votes; -1: no vote needed
    std::int32_t lane = 0;
  };
  struct NoticeArrival {
    std::int64_t time_ns = 0;
    Notice notice;
  };
  struct InboxBytes {
    std::int64_t time_ns = 0;
    std::int64_t bytes = 0;
  };
  struct RankState {
    int held = 0;
    int head = 0;                  // of the ring of held tasks
    std::int64_t last_end_ns = 0;  // of the last decided task
    std::int64_t wake_ns = NextEventTree::kNever;
    std::uint64_t round = 0;                    // the last round it took part in
    WaitReason reason = WaitReason::kNotReady;  // of its last decision
    int in_flight = 0;                          // messages that have set out and not arrived
    int root_inputs = 0;                        // its root tasks' inputs that have not arrived
    std::int64_t busy_ns = 0;
    std::int64_t inbox_bytes = 0;
    std::int64_t peak_inbox_bytes = 0;
    Inbox<Arrival> arrivals;
    Inbox<NoticeArrival> notices;
    Inbox<InboxBytes> transmissions;  // activations whose transmission has yet to start
  };
  // One message that the tasks of a stage and slot send, for microbatch 0.
  struct Output {
    TaskId task = kNoTask;
    EdgeId edge = 0;
    std::int32_t to_rank = 0;
    std::int32_t producer = 0;
    std::int32_t link = 0;
    std::int32_t vote = 0;  // first message of this edge in the receiver's votes
    bool activation = false;
  };

  void build_outputs();
  void run_once(std::int64_t clip_ns);
  void reset(std::int64_t clip_ns);
  void deliver_root_inputs();
  void run_round(std::int64_t now_ns);
  void join_round(int rank);
  void finish_tasks(int rank, std::int64_t now_ns);
  void send_outputs(int rank, TaskId task, std::int64_t now_ns);
  void send(const Output& output, int microbatch, std::int64_t now_ns);
  void send_to_lanes(const Output& output, int microbatch, std::int64_t sent_ns);
  void count_in_inbox(RankState& to, std::int64_t bytes, std::int64_t sent_ns, std::int64_t now_ns);
  void deliver(int rank, std::int64_t now_ns);
  void deliver_arrival(int rank, const Arrival& arrival);
  void decide(int rank, std::int64_t now_ns);
  void begin(int rank, TaskId task, std::int64_t now_ns);
  void send_notices(int rank, std::int64_t now_ns);
  void take_from_inbox(RankState& state, TaskId task);
  std::int64_t next_event_ns(int rank) const;
  void note_idle(int rank, std::int64_t now_ns);
  HeldTask& held(int rank, int index) {
    return held_[static_cast<std::size_t>(rank * depth_ + index)];
  }

  const PreparedCase& prepared_;
  const Program& program_;
  const EngineDetail detail_;
  const int microbatches_;
  const int depth_;
  const bool has_bandwidth_;
  const bool has_bytes_;
  const bool votes_;
  const bool leader_;

  std::vector<RankScheduler> schedulers_;
  std::vector<ArrivalVote> arrival_votes_;  // by rank, with votes only
  std::vector<RankState> ranks_;
  std::vector<HeldTask> held_;  // [rank][ring of queue_depth]
  std::vector<Output> outputs_;
  std::vector<std::int32_t> first_output_;  // by stage and slot, one more at the end
  std::vector<std::int64_t> link_free_ns_;
  std::vector<std::int64_t> lanes_ready_ns_;  // by TaskId: inputs on every lane, leader only
  std::vector<std::int64_t> group_end_ns_;    // by stage and slot
  NextEventTree events_;
  std::vector<int> round_;  // the ranks that take part in this round
  std::uint64_t round_number_ = 0;
  std::int64_t makespan_ns_ = 0;

  std::vector<RankResult> records_;
  std::vector<MessageRecord> messages_;
  IdleLedger idle_;
};

}  // namespace rrfp
