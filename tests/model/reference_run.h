// One run of the reference simulator. Sections in the comments are those of
// the rules: readiness, arbitration, memory, anticipation, communication,
// tensor parallelism, idle causes.
//
// Thread safety: none; one run, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/simulate.h"
#include "tests/model/reference_case.h"
#include "tests/model/reference_simulator.h"
#include "traces/simulation_result.h"

namespace rrfp::model {

class ReferenceRun {
 public:
  ReferenceRun(const ReferenceCase& ready, const SimulateOptions& options, Mutant mutant);

  SimulationResult run();

 private:
  /// An edge and a microbatch.
  using MessageKey = std::pair<EdgeId, int>;

  struct Event {
    enum class What : std::uint8_t {
      kWake,          ///< nothing but a reason to look: an input, a start, the end of a wait
      kFinish,        ///< of `task`
      kTransmission,  ///< of `message` starts
      kArrival,       ///< of `message`, for the group
      kNotice,        ///< of `message`, with its eta
    };
    What what = What::kWake;
    TaskId task = kNoTask;
    MessageKey message;
    std::int64_t eta_ns = 0;
  };

  struct TaskState {
    bool decided = false;  ///< "started", in the window and in admission
    bool finished = false;
    bool holds_token = false;  ///< of an F: its activation is the token's
    std::int64_t decided_ns = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t expected_end_ns = 0;
  };

  struct MessageState {
    bool in_flight = false;
    bool arrived = false;
    std::int64_t finish_ns = 0;
    std::int64_t sent_ns = 0;
    std::int64_t arrival_ns = 0;
    std::int64_t last_lane_ns = 0;
    std::optional<std::int64_t> eta_ns;
    int posted_ends = 0;  ///< rendezvous
  };

  struct RankState {
    std::vector<TaskId> started;  ///< in the order of decision
    std::vector<TaskId> held;     ///< decided, unfinished
    std::int64_t bytes = 0;
    std::int64_t peak_bytes = 0;
    std::int64_t pool_used_bytes = 0;
    std::int64_t inbox_bytes = 0;
    std::int64_t peak_inbox_bytes = 0;
    bool anticipating = false;
    std::set<MessageKey> phase;  ///< rendezvous: transfers it waits for
  };

  struct Sample {
    std::int64_t at_ns = 0;
    std::vector<std::optional<IdleCause>> causes;  ///< by rank; nothing where busy
  };

  // Events (reference_run.cc).
  void push(std::int64_t at_ns, Event event);
  void apply_events_of_this_instant();
  void apply(const Event& event);
  void finish(TaskId id);
  void send(MessageKey key);
  void enter_link(MessageKey key);
  void arrive(MessageKey key);
  void add_to_inbox(MessageKey key);
  SimulationResult result() const;

  // Rendezvous (reference_run.cc).
  void begin_phase(int rank);
  void post(MessageKey key);
  void end_phase_when_done(int rank);

  // Decisions (reference_rules.cc).
  bool met(const Dependency& dependency, int microbatch) const;
  bool is_ready(TaskId id) const;
  std::optional<std::int64_t> announced_eta(TaskId id) const;
  bool in_window(TaskId id) const;
  int first_open_position(int rank) const;
  TaskId first_startable(int rank) const;
  bool must_wait(int rank, TaskId best);
  void decide(int rank);
  void start(int rank, TaskId id);
  std::int64_t earliest_start(int rank, TaskId id) const;
  void announce(int rank, TaskId id);
  std::int64_t permille(std::int64_t share, TaskId id) const;

  // Memory (reference_rules.cc).
  bool is_admissible(TaskId id) const;
  bool admits_by_shares(TaskId id, std::int64_t budget) const;
  bool admits_oldest_first(TaskId id, std::int64_t budget) const;
  bool may_take_token(TaskId id) const;
  bool by_shares() const;
  void take_memory(int rank, TaskId id);
  void release_memory(TaskId id);
  std::int64_t bytes_of_stage(int stage) const;

  // Idle causes (reference_idle.cc).
  void sample_causes();
  std::optional<IdleCause> cause_of(int rank) const;
  IdleCause cause_of_waiting(int rank) const;
  bool has_message_in_flight(int rank) const;
  bool has_root_waiting(int rank) const;

  const Program& program() const { return case_.program; }
  bool is(Mutant mutant) const { return mutant_ == mutant; }
  TaskState& state(TaskId id) { return tasks_[static_cast<std::size_t>(id)]; }
  const TaskState& state(TaskId id) const { return tasks_[static_cast<std::size_t>(id)]; }
  RankState& rank_state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const RankState& rank_state(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  const std::vector<TaskId>& hint(int rank) const {
    return case_.hint[static_cast<std::size_t>(rank)];
  }
  std::size_t flat(TaskId id) const {
    return static_cast<std::size_t>(program().stage_of(id) * program().microbatches() +
                                    program().microbatch_of(id));
  }
  int rank_of(TaskId id) const { return program().rank_of(program().stage_of(id)); }
  const MessageState* find_message(MessageKey key) const;

  const ReferenceCase& case_;
  SimulateOptions options_;
  Mutant mutant_;
  std::int64_t now_ns_ = 0;
  std::int64_t sequence_ = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, Event> events_;  ///< by time, then sequence
  std::vector<TaskState> tasks_;
  std::map<MessageKey, MessageState> messages_;
  std::map<std::pair<int, int>, std::int64_t> link_free_ns_;
  std::map<int, int> token_holder_;               ///< stage -> microbatch
  std::vector<std::int64_t> held_by_activation_;  ///< [stage * microbatches + microbatch]
  std::vector<RankState> ranks_;
  std::vector<Sample> samples_;
  std::int64_t last_phase_end_ns_ = 0;
};

}  // namespace rrfp::model
