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

#include "scheduler_core/admission.h"
#include "scheduler_core/divider.h"
#include "scheduler_core/fixed_array.h"
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

  /// Goes on with the running means of `before`, the scheduler that this one
  /// replaces, in proportion to what each of the two was told to expect. No
  /// effect unless both adapt and hold the same stages.
  void adopt_means(const RankScheduler& before);

  /// REQUIRES: held() < queue_depth.
  Decision decide(std::int64_t now_ns);

  /// Of the last decision, where it was kStart; ascending destination stage.
  std::span<const Notice> notices() const { return {notices_.begin(), notice_count_}; }

  int held() const { return held_; }              ///< decided, unfinished
  int decided() const { return decided_count_; }  ///< in this iteration
  int size() const { return local_at_.size(); }
  bool finished() const { return decided_count_ == size() && held_ == 0; }
  /// The lowest hint position not yet decided; size() where there is none.
  int first_undecided() const;
  TaskId task_at(int position) const { return id_of(local_at_[position]); }
  /// The candidates of a decision: what is ready, admissible or not, inside the
  /// window or not, in hint order, as many as fit in `to`. Returns how many it
  /// wrote.
  std::size_t ready(std::span<TaskId> to) const;
  const Admission& admission() const { return admission_; }
  /// Calls of decide() since construction.
  std::uint64_t decisions() const { return decisions_; }

 private:
  // A task by its local index, [local stage][slot][microbatch]; its "group" is
  // [local stage][slot].
  struct LocalTask {
    std::uint32_t position : 18 = 0;   // in the hint
    std::uint32_t ready_set : 14 = 0;  // in ready_: where it stands when ready
    // How many dependencies are not yet met, or one of the marks below.
    std::uint16_t unmet = kNoSuchTask;
    std::uint16_t announced = 0;  // those that are announced inputs
  };
  static_assert(sizeof(LocalTask) == 8 && PositionSet::kMostPositions < (1 << 18) &&
                kMostStages + 1 < (1 << 14));
  static constexpr std::uint16_t kNoSuchTask = 0x8000;  // never counts down to 0
  static constexpr std::uint16_t kDecided = 0xffff;

  // What the tasks of one stage and slot have in common. Local indices and
  // TaskIds are those of microbatch 0.
  struct Group {
    TaskId first_task = kNoTask;
    std::int32_t own_dependent = -1;   // local index: the next slot of the stage
    std::int32_t first_dependent = 0;  // in dependents_: other stages of the rank
    std::int16_t dependents = 0;
    std::int16_t local_stage = 0;
    bool forward = false;
    Returns returns = Returns::kNothing;  // memory, at a finish, where nothing is fused
  };
  // A run of entries in one of the flat arrays.
  struct Run {
    std::int32_t first = 0;
    std::int32_t last = 0;
  };
  // The same for what only anticipation looks at.
  struct GroupMessages {
    Run outputs;                   // in outputs_: to other ranks
    Run producers;                 // in producers_: stages whose output it needs
    std::int32_t first_input = 0;  // in input_eta_ns_: [microbatch][producer]
  };
  // The ready F of a stage with a budget, or what is always admissible. Where
  // activations differ, least_bytes[w] is the least activation among the
  // members of word w of the set, so that a blocked word is passed over in one
  // step.
  struct ReadySet {
    PositionSet set;
    FixedArray<std::int64_t> least_bytes;
  };
  // A message to another rank, for microbatch 0.
  struct Output {
    Notice notice;  // without eta
    EdgeId edge = 0;
  };

  void build_hint(const std::vector<Task>& order);
  void build_groups();
  void build_messages();
  void build_accumulation();
  void build_means();
  void build_ready();

  int local_of(TaskId task) const {
    if (only_stage_ >= 0) return task - first_task_;
    return local_of_many(task);
  }
  int local_of_many(TaskId task) const;
  int group_of(int local) const { return group_(local); }
  int microbatch_of(int local) const { return local - group_(local) * microbatches_; }
  TaskId id_of(int local) const {
    const int group = group_(local);
    return groups_[group].first_task + local - group * microbatches_;
  }
  std::int64_t& input_eta_ns(int local, int producer);

  void note_arrival(int local, int producer);
  void satisfy(int local);
  void lower_least(ReadySet& ready, int position);
  void raise_least(ReadySet& ready, int position);
  int window_end();
  int first_admissible() const;
  int first_fitting(int local_stage) const;
  int first_fitting_mixed(const ReadySet& ready, std::int64_t room) const;
  int token_position(int local_stage) const;
  std::int64_t activation_at(int position) const;
  WaitReason why_idle(int best, int limit) const;
  std::int64_t expected_ns(int local) const;
  std::int64_t announced_eta_ns(int local) const;
  std::optional<std::int64_t> wait_until(int position, std::int64_t now_ns) const;
  TaskId start(int position, std::int64_t now_ns);
  void write_notices(int local, std::int64_t now_ns);

  // What every task passes through comes first.
  FixedArray<std::int32_t> local_at_;  // by hint position
  FixedArray<LocalTask> locals_;
  FixedArray<Group> groups_;  // [local stage][slot]
  Divider group_;             // by microbatches_
  int microbatches_;
  int only_stage_ = -1;    // where the rank has just one stage
  TaskId first_task_ = 0;  // of only_stage_
  int held_ = 0;
  // What is ready and always admissible, then, with a budget, the ready F of
  // each local stage. A task knows its set, so that nothing here branches on
  // the kind of a task, which is as good as random.
  FixedArray<ReadySet> ready_;
  bool anticipating_ = false;
  bool ordered_ = false;  // ordered accumulation
  bool windowed_ = false;
  bool fused_ = false;  // some backward in a split program
  int queue_depth_ = 1;
  int decided_count_ = 0;
  std::uint64_t decisions_ = 0;
  Admission admission_;

  FixedArray<std::int32_t> dependents_;
  FixedArray<std::int32_t> next_accumulation_;  // by local index: what waits for it, or -1
  PositionSet announced_;                       // all unmet dependencies are announced inputs
  FixedArray<std::int64_t> input_eta_ns_;       // of each input; kUnannounced, kArrived
  FixedArray<GroupMessages> messages_;          // [local stage][slot]
  FixedArray<Output> outputs_;
  FixedArray<std::int32_t> producers_;
  FixedArray<Notice> notices_;
  std::size_t notice_count_ = 0;
  std::int64_t expected_end_ns_ = 0;  // of the last decided task
  int first_undecided_ = 0;           // a lower bound, moved on as needed

  const Program* program_;
  RankSchedulerConfig config_;
  FixedArray<int> local_stage_;          // [stage]; -1: not of this rank
  FixedArray<LocalTask> initial_;        // locals_ at the start of an iteration
  FixedArray<std::int64_t> mean_ns_;     // [local stage][slot], adapt_expected
  FixedArray<std::int64_t> profile_ns_;  // the first of those means
};

}  // namespace rrfp

#include "scheduler_core/rank_scheduler_inline.h"
