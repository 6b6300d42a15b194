// What each rank's host does in launch-queue mode: a list of actions. Compute,
// delay and communication actions become entries of the rank's one launch
// queue, each on a stream; a wait is an entry too. A program says in which
// order, not when: sim/launch_queue.h evaluates it.
//
// Invariants
//  1. The operations of an action, the actions a wait waits for and the tasks
//     of a compute are the range [first, last) of the rank's own list.
//  2. A wait names earlier actions of its own rank only.
//  3. A message is named at most once on each of its two ends.
//  4. A rank with `stuck` has been cut before the first task that could not
//     start even if every message arrived.
//
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler_core/admission.h"
#include "scheduler_core/idle_cause.h"
#include "scheduler_core/task.h"
#include "traces/case.h"

namespace rrfp {

enum class LaunchKind : std::uint8_t { kCompute, kDelay, kCommunicate, kWait };

/// Streams of a rank: compute, batched communication, and one per peer.
inline constexpr int kComputeStream = 0;
inline constexpr int kBatchedStream = 1;
constexpr int peer_stream(int peer) { return 2 + peer; }
constexpr int launch_streams(int ranks) { return 2 + ranks; }

/// One end of one message. Messages are numbered edge * microbatches +
/// microbatch.
struct LaunchOperation {
  std::int32_t message = 0;
  bool sends = false;
};

struct LaunchAction {
  LaunchKind kind = LaunchKind::kCompute;
  int stream = kComputeStream;
  int first = 0;  ///< of `tasks`, `operations` or `waited`, by kind
  int last = 0;
  std::int64_t length_ns = 0;      ///< compute and delay
  std::int64_t not_before_ns = 0;  ///< compute: the host holds it back until its input is there
  std::int64_t host_ns = 0;        ///< compute: what launching it costs the host
};

struct LaunchRank {
  std::vector<LaunchAction> actions;
  std::vector<TaskId> tasks;                ///< in the order in which they run
  std::vector<LaunchOperation> operations;  ///< by action
  std::vector<int> waited;                  ///< action indices
  std::int64_t peak_bytes = 0;              ///< activation memory
  std::optional<IdleCause> stuck;           ///< why it was cut, if it was
};

struct LaunchProgram {
  std::vector<LaunchRank> ranks;
  std::int64_t message_ns = 0;
  int messages = 0;  ///< size of a table indexed by message number
};

/// The program of `input` with no ranks yet.
inline LaunchProgram empty_launch_program(const Case& input) {
  LaunchProgram program;
  program.message_ns = input.network.message_ns;
  program.messages = static_cast<int>(input.program.edges().size()) * input.program.microbatches();
  return program;
}

/// Appends actions for one rank. Both lowerings write through it, so that
/// injected delays, missing messages and tasks that cannot start are treated
/// alike.
class LaunchRankBuilder {
 public:
  /// REQUIRES: `input` outlives the builder; its budgets are at least
  /// least_budget.
  LaunchRankBuilder(const Case& input, int rank);

  /// The tasks as one compute entry. Where one of them needs a task of this
  /// rank that has not run, a message that was not waited for, or memory that
  /// the order never frees, the rank is stuck: this and all later calls do
  /// nothing.
  void compute(std::span<const TaskId> tasks);

  /// One entry for all `operations` on `stream`, after a delay entry for each
  /// one that sends over a delayed link. Nothing for an empty list. Stuck
  /// where the task that makes what is sent has not run.
  void communicate(std::span<const LaunchOperation> operations, int stream);

  /// Holds the host until actions [first, last) are done: all communication
  /// among them is waited for. Nothing where there is none.
  void wait(int first, int last);

  int size() const { return static_cast<int>(rank_.actions.size()); }
  bool stuck() const { return rank_.stuck.has_value(); }
  LaunchRank take();

 private:
  bool account(TaskId task);
  bool has_run(const LaunchOperation& send) const;
  bool can_start(TaskId task) const;
  std::int64_t delay_of(const LaunchOperation& operation) const;

  const Case& input_;
  const Program& program_;
  int number_;  ///< of the rank
  LaunchRank rank_;
  Admission memory_;
  std::vector<std::int64_t> delay_to_ns_;  ///< by rank: injected delay of the link to it
  std::vector<bool> ran_;                  ///< by TaskId
  std::vector<bool> received_;             ///< by message
};

}  // namespace rrfp
