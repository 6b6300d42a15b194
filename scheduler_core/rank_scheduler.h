// Decides what one rank runs next. The whole policy of readiness-first
// execution and of fixed orders is here: readiness, window, admission,
// anticipation, queue depth.
//
// A pure state machine: events in, decisions out. Time enters only as an
// argument; there is no clock, thread, lane or I/O, so the simulator, the
// executor and a replayed log get the same decisions from the same calls.
//
// Protocol
//  1. Within an instant, report every event first (on_input, on_notice,
//     on_finished, in any order), then call decide until it does not answer
//     kStart or the rank holds queue_depth tasks.
//  2. Between instants, `now_ns` never decreases.
//  3. After kWait, decide again at the rank's next event, and at until_ns at
//     the latest.
//
// Invariants
//  1. A task starts once, after all its dependencies, within the budget.
//  2. Without a window, a rank that waits never waits forever: see Admission
//     and the bound on anticipation.
//
// No allocation after construction. Not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler_core/admission.h"
#include "scheduler_core/policy.h"
#include "scheduler_core/position_set.h"
#include "scheduler_core/program.h"
#include "scheduler_core/schedule.h"

namespace rrfp {

/// What a rank is told before an iteration. Spans must outlive the scheduler.
struct RankSchedulerConfig {
  int rank = 0;
  int window = kNoWindow;
  int queue_depth = 1;
  std::optional<Anticipation> anticipation;
  MemoryModel memory;
  std::optional<std::int64_t> budget_bytes;
  /// From a decision to the start it causes: dispatch_ns + announce_ns.
  std::int64_t start_delay_ns = 0;
  /// By TaskId. Only read with anticipation.
  std::span<const std::int64_t> expected_ns;
  /// [EdgeId * microbatches + microbatch]: busy time + expected latency, from
  /// a finish to the arrival. Only read with anticipation.
  std::span<const std::int64_t> expected_transfer_ns;
  /// Follow on_expected with a running mean; false: expected_ns as given.
  bool adapt_expected = false;
};

/// Tells `to_rank` that `task` will get the output of stage `producer` at
/// about `eta_ns`.
struct Notice {
  TaskId task = kNoTask;
  int producer = 0;
  int to_rank = 0;
  std::int64_t eta_ns = 0;
};

/// Why nothing starts, as far as the rank itself can tell.
enum class WaitReason : std::uint8_t {
  kNone,          ///< something starts
  kAnticipation,  ///< a better task is about to arrive
  kOrder,         ///< a ready, admissible task stands outside the window only
  kMemory,        ///< a ready F inside the window is not admissible
  kNotReady,      ///< nothing is ready
};

struct Decision {
  enum class Action : std::uint8_t { kStart, kWait, kIdle };

  TaskId task = kNoTask;  ///< kStart
  Action action = Action::kIdle;
  WaitReason reason = WaitReason::kNone;
  std::int64_t until_ns = 0;  ///< kWait
};

class RankScheduler {
 public:
  /// `hint` is a total order of the rank's tasks.
  /// REQUIRES: `schedule` fits `program` (fit_program), the budget is at
  /// least least_budget, and `program` outlives the scheduler.
  RankScheduler(const Program& program, const Schedule& schedule,
                const RankSchedulerConfig& config);

  /// Back to the start of an iteration, nothing arrived. The running means of
  /// on_expected stay.
  void reset();

  /// An input of `task` has arrived from stage `producer`: an activation or a
  /// gradient from another rank, or, with producer == kRootInput, the input
  /// of a root stage. Inputs from the rank itself are not reported.
  void on_input(TaskId task, int producer);
  static constexpr int kRootInput = -1;

  /// That input is expected at `eta_ns`. Dropped if it has arrived.
  void on_notice(TaskId task, int producer, std::int64_t eta_ns);

  /// A decided task has ended.
  void on_finished(TaskId task, std::int64_t now_ns);

  /// A task of this stage and kind was measured to take `ns`, scaled to a
  /// microbatch of mean expected cost. mean += (ns - mean) / 8, and expected
  /// durations follow in proportion. No effect unless adapt_expected.
  void on_expected(int stage, Kind kind, std::int64_t ns);

  /// REQUIRES: held() < queue_depth.
  Decision decide(std::int64_t now_ns);

  /// Of the last decision, where it was kStart; ascending destination stage.
  std::span<const Notice> notices() const { return {notices_.data(), notice_count_}; }

  int held() const { return held_; }              ///< decided, unfinished
  int decided() const { return decided_count_; }  ///< in this iteration
  int size() const { return static_cast<int>(tasks_.size()); }
  bool finished() const { return decided_count_ == size() && held_ == 0; }
  /// The lowest hint position not yet decided; size() where there is none.
  int first_undecided() const;
  TaskId task_at(int position) const { return tasks_[static_cast<std::size_t>(position)].id; }
  /// The candidates of a decision: what is ready, admissible or not, inside the
  /// window or not, in hint order, as many as fit in `to`. Returns how many it
  /// wrote.
  std::size_t ready(std::span<TaskId> to) const;
  const Admission& admission() const { return admission_; }
  /// Calls of decide() since construction.
  std::uint64_t decisions() const { return decisions_; }

 private:
  // A task in hint order. `local` numbers the rank's tasks as
  // [local stage][slot][microbatch]; `group` is [local stage][slot].
  struct HintTask {
    TaskId id = kNoTask;
    std::int32_t local = 0;
    std::int32_t microbatch = 0;
    std::int32_t next_accumulation = -1;  // local index of what waits for it, or -1
    std::int16_t group = 0;
    std::int16_t local_stage = 0;
    bool forward = false;
    bool releases = false;  // memory, at its finish: `part`
    Release part = Release::kEverything;
  };
  // How many dependencies of a task are not yet met, or one of the marks.
  struct Unmet {
    std::uint16_t total = 0;
    std::uint16_t announced = 0;  // those that are announced inputs
  };
  static constexpr std::uint16_t kNoSuchTask = 0x8000;  // never counts down to 0
  static constexpr std::uint16_t kDecided = 0xffff;

  // What the tasks of one stage and slot have in common.
  struct Group {
    std::vector<int> dependents;     // local index, for microbatch 0, of what a finish serves
    std::vector<Notice> outputs;     // to other ranks, for microbatch 0, without eta
    std::vector<EdgeId> edges;       // of outputs
    std::span<const int> producers;  // stages whose output it needs, ascending
    int first_input = 0;             // into input_eta_ns_: [microbatch][producer]
  };
  // The ready F of a stage with a budget, by position. Where activations
  // differ, least_bytes[w] is the least activation among the members of word
  // w of the set, so that a blocked word is passed over in one step.
  struct GatedForwards {
    PositionSet ready;
    bool uniform = true;
    std::int64_t activation_bytes = 0;  // where uniform
    std::vector<std::int64_t> least_bytes;
  };

  void build_hint(const Schedule& schedule);
  void build_groups();
  void build_gates();

  int local_of(TaskId task) const {
    if (only_stage_ >= 0) return task - first_task_;
    return local_of_many(task);
  }
  int local_of_many(TaskId task) const;
  const HintTask& at_local(int local) const {
    return tasks_[static_cast<std::size_t>(position_[static_cast<std::size_t>(local)])];
  }
  std::int64_t& input_eta_ns(const HintTask& task, int producer);

  void satisfy(int local);
  void make_ready(int position);
  void unready(int position);
  int window_end();
  int best_gated() const;
  int first_fitting(const GatedForwards& gate, std::int64_t room) const;
  std::int64_t activation_at(int position) const;
  WaitReason why_idle(int best, int limit) const;
  std::int64_t expected_ns(const HintTask& task) const;
  std::int64_t announced_eta_ns(const HintTask& task) const;
  std::optional<std::int64_t> wait_until(int position, std::int64_t now_ns) const;
  void start(int position, std::int64_t now_ns);
  void write_notices(const HintTask& task, std::int64_t now_ns);

  const Program* program_;
  RankSchedulerConfig config_;
  int microbatches_;
  int only_stage_;                // -1 where the rank has more than one stage
  TaskId first_task_;             // of only_stage_
  std::vector<int> local_stage_;  // [stage]; -1: not of this rank

  std::vector<HintTask> tasks_;             // by hint position
  std::vector<int> position_;               // by local index; -1: no such task
  std::vector<Unmet> initial_;              // by local index
  std::vector<Unmet> unmet_;                // by local index
  std::vector<Group> groups_;               // [local stage][slot]
  std::vector<std::int64_t> input_eta_ns_;  // of each input; kUnannounced, kArrived
  std::vector<std::int64_t> mean_ns_;       // [local stage][slot], adapt_expected
  std::vector<std::int64_t> profile_ns_;    // the first of those means

  Admission admission_;
  PositionSet ready_;                 // ready and always admissible
  PositionSet announced_;             // all unmet dependencies are announced inputs
  std::vector<GatedForwards> gates_;  // [local stage], with a budget
  int first_undecided_ = 0;           // a lower bound, moved on as needed

  std::vector<Notice> notices_;
  std::size_t notice_count_ = 0;
  int held_ = 0;
  int decided_count_ = 0;
  std::int64_t expected_end_ns_ = 0;  // of the last decided task
  std::uint64_t decisions_ = 0;
};

}  // namespace rrfp
