// Eager communication in virtual time: message-driven, asynchronous links.
//
// The loop works in rounds. A round is one instant: first all events of the
// instant at every rank, then the decisions of every rank that may decide. A
// decision that causes something at the same instant opens a new round of it.
//
// One pending time per rank is kept in a tournament tree: the end of its
// running task while it can take no other, else the earlier of that and its
// next arrival. What arrives at a rank by its next decision, and it can take
// no other task before, is handed to its scheduler when it is sent: no decision
// comes between, so none changes, and most messages cost neither an event nor
// a place in an inbox. Where inbox memory, votes or causes are kept, which
// look at the time in between, arrivals wait in the inbox for that decision.
//
// Where every message takes time, and no accounts or notices ask for one clock,
// the ranks are not taken in order of time at all: each goes ahead as far as no
// message can still change what it does (see Horizons), and the next one along
// the pipeline follows. The result is the same to the nanosecond; going along
// the pipeline finds the neighbour's state in the cache and needs no tree.
//
// Invariants (of one rank, where ranks go ahead)
//  1. Time never goes back, and every event of an instant is applied before a
//     decision of that instant.
//  2. Decisions of one round do not see each other: what they send is
//     delivered in a later round.
//
// No allocation in reset() and run() once a first run has sized the buffers.
// Not thread safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "scheduler_core/arrival_vote.h"
#include "scheduler_core/divider.h"
#include "scheduler_core/rank_scheduler.h"
#include "sim/horizons.h"
#include "sim/idle_ledger.h"
#include "sim/inbox.h"
#include "sim/next_event_tree.h"
#include "sim/run_end.h"
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

  /// Whether run() takes ranks ahead of each other.
  bool runs_ahead() const { return sweeps_; }

  bool completed() const { return all_finished(schedulers_); }
  std::int64_t makespan_ns() const { return makespan_ns_; }
  std::int64_t busy_ns(int rank) const { return ranks_[static_cast<std::size_t>(rank)].busy_ns; }
  std::int64_t peak_inbox_bytes(int rank) const {
    return accounts_[static_cast<std::size_t>(rank)].peak_inbox_bytes;
  }
  const RankScheduler& scheduler(int rank) const {
    return schedulers_[static_cast<std::size_t>(rank)];
  }
  /// The end of the last task of this stage and slot; 0 where there is none.
  std::int64_t last_end_ns(int stage, Slot slot) const {
    return groups_[static_cast<std::size_t>(stage * kSlots + static_cast<int>(slot))].end_ns;
  }

  /// Everything that was written down. REQUIRES: run() has been called.
  SimulationResult result() const;

 private:
  // The loop is compiled three times: over ranks up to their horizons, in
  // rounds, and in rounds with accounts of messages and idle time.
  enum class Loop : std::uint8_t { kSweeps, kRounds, kAccounts };
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  static constexpr int kLeastShare = 4;  // sweeps go on while this part of the ranks got ahead

  struct HeldTask {
    TaskId task = kNoTask;
    std::int64_t end_ns = 0;
  };
  // A message for the rank, or one lane's vote for it. `source` is an index of
  // outputs_, with votes times kMostLanes plus the lane; kRootInput for a root.
  struct Arrival {
    std::int64_t time_ns = 0;
    TaskId task = kNoTask;
    std::int32_t source = 0;
  };
  struct NoticeArrival {
    std::int64_t time_ns = 0;
    Notice notice;
  };
  struct InboxBytes {
    std::int64_t time_ns = 0;
    std::int64_t bytes = 0;
  };
  // What every event of a rank touches, and what a sender looks at, in one
  // cache line; then what only a rank that is not full needs.
  struct alignas(64) RankState {
    HeldTask front;  // of the tasks it holds; the others are in the ring
    int held = 0;
    int head = 0;                  // of the ring
    std::uint64_t round = 0;       // the last round it took part in
    std::int64_t last_end_ns = 0;  // of the last decided task
    std::int64_t busy_ns = 0;
    std::int64_t inbox_ns = NextEventTree::kNever;  // the first of what is on its way

    Inbox<Arrival> arrivals;
    Inbox<NoticeArrival> notices;
    std::int64_t wake_ns = NextEventTree::kNever;
  };
  // Of a stage and slot.
  struct Group {
    std::int32_t first_output = 0;
    std::int32_t last_output = 0;
    std::int64_t end_ns = 0;  // of its last task so far
  };
  // What only inbox memory and idle causes need.
  struct RankAccount {
    WaitReason reason = WaitReason::kNotReady;  // of its last decision
    int in_flight = 0;                          // messages that have set out and not arrived
    int root_inputs = 0;                        // its root tasks' inputs that have not arrived
    std::int64_t inbox_bytes = 0;
    std::int64_t peak_inbox_bytes = 0;
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
  std::optional<Horizons> find_horizons() const;
  std::vector<LinkBound> least_latencies() const;
  std::vector<std::int64_t> shortest_tasks() const;
  void run_sweeps();
  int run_to_horizon(int rank);
  void raise_floor(int rank, std::int64_t horizon_ns);
  void run_once(std::int64_t clip_ns);
  template <Loop kLoop>
  void run_rounds(std::int64_t limit);
  void reset(std::int64_t clip_ns);
  void deliver_root_inputs();
  template <Loop kLoop>
  void run_round(std::int64_t now_ns);
  void join_round(int rank) {
    ranks_[static_cast<std::size_t>(rank)].round = round_number_;
    round_[round_size_++] = rank;
  }
  template <Loop kLoop>
  void run_joined(std::int64_t now_ns);
  template <Loop kLoop>
  void finish_tasks(int rank, std::int64_t now_ns);
  template <Loop kLoop>
  void send_outputs(TaskId task, std::int64_t now_ns);
  template <Loop kLoop>
  void send(std::int32_t output, int microbatch, std::int64_t now_ns);
  std::int64_t send_accounted(std::int32_t output, int microbatch, std::int64_t now_ns);
  void count_in_inbox(int rank, std::int64_t bytes, std::int64_t sent_ns, std::int64_t now_ns);
  void drain_transmissions(RankAccount& account, std::int64_t now_ns);
  template <Loop kLoop>
  void deliver(int rank, std::int64_t now_ns);
  void deliver_accounted(int rank, const Arrival& arrival);
  template <Loop kLoop>
  void decide(int rank, std::int64_t now_ns);
  template <Loop kLoop>
  void begin(int rank, TaskId task, std::int64_t now_ns);
  void account_start(int rank, TaskId task, std::int64_t now_ns, std::int64_t start_ns);
  void take_from_inbox(RankAccount& account, TaskId task);
  void send_notices(const RankScheduler& scheduler, std::int64_t now_ns);
  // The instant of the next decision of a rank that holds all it may; less
  // than every time for another, which may decide at any event.
  std::int64_t next_decision_ns(const RankState& state) const {
    return state.held == depth_ ? state.front.end_ns : -1;
  }
  std::int64_t next_event_ns(const RankState& state) const;
  void note_idle(int rank, std::int64_t now_ns);
  std::int32_t producer_of(std::int32_t source) const {
    return source < 0 ? RankScheduler::kRootInput
                      : outputs_[static_cast<std::size_t>(source)].producer;
  }
  HeldTask& ring(int rank, int index) {
    return ring_[static_cast<std::size_t>(rank * depth_ + index % depth_)];
  }

  const PreparedCase& prepared_;
  const Program& program_;
  const EngineDetail detail_;
  const int microbatches_;
  const Divider stage_and_slot_;
  const int depth_;
  const bool has_bandwidth_;
  const bool has_bytes_;
  const bool votes_;
  const bool leader_;
  // Whether anything beyond time itself is kept: links, lanes, inbox bytes,
  // causes or records. The loop is compiled with and without.
  const bool accounted_;
  const std::int64_t* const duration_ns_;       // by TaskId
  const std::int64_t* const group_latency_ns_;  // by message
  const std::int64_t start_delay_ns_;
  const std::int64_t notice_ns_;

  std::vector<RankScheduler> schedulers_;
  std::vector<ArrivalVote> arrival_votes_;  // by rank, with votes only
  std::vector<RankState> ranks_;
  std::vector<RankAccount> accounts_;
  std::vector<HeldTask> ring_;  // [rank][queue_depth]: held tasks behind the front
  std::vector<Output> outputs_;
  std::vector<Group> groups_;  // by stage and slot
  std::vector<std::int64_t> link_free_ns_;
  std::vector<std::int64_t> lanes_ready_ns_;  // by TaskId: inputs on every lane, leader only
  NextEventTree events_;
  std::vector<std::int64_t> next_ns_;  // by rank, in sweeps
  std::optional<Horizons> horizons_;
  const bool sweeps_;
  std::vector<int> round_;  // the first round_size_ ranks take part in this round
  std::size_t round_size_ = 0;
  std::uint64_t round_number_ = 0;
  std::int64_t makespan_ns_ = 0;

  std::vector<RankResult> records_;
  std::vector<MessageRecord> messages_;
  IdleLedger idle_;
};

}  // namespace rrfp
