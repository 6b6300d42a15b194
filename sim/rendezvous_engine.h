// Blocking batched send and receive in virtual time, as fixed-order pipeline
// runtimes use them. Between consecutive tasks of its order a rank posts the
// sends of the one's outputs and the receives of the next one's inputs
// together (a phase) and waits for all of them. A transfer starts when both
// ends have posted it.
//
// A rank is in one of three states: running a task, in a phase, or waiting
// for its next task to become ready and admissible, which then depends on the
// rank itself or on a root input alone.
//
// Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler_core/rank_scheduler.h"
#include "sim/idle_ledger.h"
#include "sim/inbox.h"
#include "sim/next_event_tree.h"
#include "traces/prepared_case.h"
#include "traces/simulation_result.h"

namespace rrfp {

class RendezvousEngine {
 public:
  /// REQUIRES: `prepared` is in rendezvous mode with a window of 1, and
  /// outlives the engine.
  explicit RendezvousEngine(const PreparedCase& prepared);

  /// Runs one iteration from its start.
  SimulationResult run();

 private:
  enum class State : std::uint8_t { kRunning, kPhase, kWaiting };
  struct RankState {
    State state = State::kPhase;
    int position = -1;       // of the running or last task
    int open_transfers = 0;  // of this phase, without a known end
    std::int64_t phase_end_ns = 0;
    std::int64_t last_end_ns = 0;
    WaitReason reason = WaitReason::kNotReady;
    int in_flight = 0;
    int root_inputs = 0;
    Inbox<RootInput> inputs;
  };
  // Of a message, by EdgeId and microbatch.
  struct Transfer {
    std::int64_t posted_ns = -1;    // by the end that came first
    std::int64_t finished_ns = -1;  // its producer's finish
  };

  void reset();
  void run_once(std::int64_t clip_ns);
  void wake(int rank, std::int64_t now_ns);
  void post_phase(int rank, std::int64_t now_ns);
  void post(int rank, EdgeId edge, int microbatch, std::int64_t now_ns);
  void end_transfer(int rank, std::int64_t end_ns);
  void end_phase(int rank, std::int64_t now_ns);
  void decide(int rank, std::int64_t now_ns);
  void finish_task(int rank, std::int64_t now_ns);
  void note_idle(int rank, std::int64_t now_ns);
  TaskId task_at(int rank, int position) const;
  RankState& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  const PreparedCase& prepared_;
  const Program& program_;
  const int microbatches_;
  std::vector<RankScheduler> schedulers_;
  std::vector<RankState> ranks_;
  std::vector<Transfer> transfers_;
  NextEventTree events_;
  IdleLedger idle_;
  std::int64_t makespan_ns_ = 0;
  SimulationResult result_;
};

}  // namespace rrfp
