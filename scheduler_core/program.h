// What has to be computed: the stages, where they are placed, and which task
// needs what. A Program says nothing about time, memory or order.
//
// Invariants
//  1. Edges of the stage graph go from a lower to a higher stage number.
//  2. A stage without a backward has only predecessors without one.
//  3. TaskId = (stage * kSlots + slot) * microbatches + microbatch, so the
//     tasks of one stage and slot are contiguous and every table that is
//     indexed by TaskId has size task_ids().
//
// Thread safety: immutable after create(); share freely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "scheduler_core/task.h"

namespace rrfp {

/// How much of a backward a stage has.
enum class Backward : std::uint8_t {
  kFull,   ///< input and weight gradient
  kInput,  ///< input gradient only (frozen weights inside a trained model)
  kNone,   ///< frozen, and so is everything before it
};

struct StageSpec {
  int rank = 0;
  std::vector<int> predecessors;  ///< lower stage numbers, no repeats
  Backward backward = Backward::kFull;

  friend bool operator==(const StageSpec&, const StageSpec&) = default;
};

struct ProgramSpec {
  int ranks = 0;
  int microbatches = 0;
  bool split_backward = false;
  bool ordered_accumulation = false;
  std::vector<StageSpec> stages;

  friend bool operator==(const ProgramSpec&, const ProgramSpec&) = default;
};

/// So that counts of dependencies and of stages on a rank fit 15 bits.
inline constexpr std::size_t kMostStages = 10'000;
/// So that a table of all ordered pairs of ranks is small.
inline constexpr int kMostRanks = 4'096;
/// So that a message, its microbatch and its lane have numbers of 31 bits.
inline constexpr std::size_t kMostEdges = std::size_t{1} << 24;
inline constexpr std::int64_t kMostMessages = std::int64_t{1} << 28;

/// The three places a task of one stage and microbatch can take.
enum class Slot : std::uint8_t { kForward = 0, kBackward = 1, kWeight = 2 };
inline constexpr int kSlots = 3;

/// A directed edge along which tensors travel: an activation along the stage
/// graph or a gradient against it. Between stages of one rank it is `local`.
struct Edge {
  int from = 0;                ///< producing stage
  int to = 0;                  ///< consuming stage
  Kind kind = Kind::kForward;  ///< kForward: activation, kBackward: gradient
  int from_rank = 0;
  int to_rank = 0;
  bool carries = true;  ///< false: a gradient that nobody needs (frozen stage)

  bool local() const { return from_rank == to_rank; }
  /// It is a message: something that travels between ranks.
  bool crosses() const { return carries && !local(); }
  /// Of the tasks that send along it, and of those that get what it brings.
  Slot slot() const { return kind == Kind::kForward ? Slot::kForward : Slot::kBackward; }
};

/// Dense number of an Edge within its Program.
using EdgeId = std::int32_t;

class Program {
 public:
  /// Checks the spec; the error names the stage and what is allowed.
  static Result<Program> create(ProgramSpec spec);

  /// The same program in which the backwards of `fused` ([stage][microbatch],
  /// flattened, size stages * microbatches) run as one task B instead of I, W.
  /// REQUIRES: split_backward().
  Program with_fused(std::vector<bool> fused) const;

  const ProgramSpec& spec() const { return spec_; }
  int ranks() const { return spec_.ranks; }
  int stages() const { return static_cast<int>(spec_.stages.size()); }
  int microbatches() const { return spec_.microbatches; }
  bool split_backward() const { return spec_.split_backward; }
  bool ordered_accumulation() const { return spec_.ordered_accumulation; }

  int rank_of(int stage) const { return spec_.stages[static_cast<std::size_t>(stage)].rank; }
  Backward backward_of(int stage) const {
    return spec_.stages[static_cast<std::size_t>(stage)].backward;
  }
  /// Ascending.
  std::span<const int> predecessors(int stage) const { return at(predecessors_, stage); }
  std::span<const int> successors(int stage) const { return at(successors_, stage); }
  std::span<const int> stages_of(int rank) const { return at(stages_of_rank_, rank); }
  bool fused(int stage, int microbatch) const {
    return !fused_.empty() && fused_[static_cast<std::size_t>(stage * microbatches() + microbatch)];
  }
  /// True where every stage is the one stage of its rank and follows the one
  /// before it: the shape that one-chunk schedules need.
  bool one_stage_per_rank() const;

  /// Size of a table indexed by TaskId (not every id is a task, see exists).
  int task_ids() const { return stages() * kSlots * microbatches(); }
  TaskId task_id(int stage, Slot slot, int microbatch) const {
    return (stage * kSlots + static_cast<int>(slot)) * microbatches() + microbatch;
  }
  /// kNoTask where `task` is out of range or of a kind that it does not have.
  TaskId find(const Task& task) const;
  /// REQUIRES: exists(id).
  Task task(TaskId id) const;
  Slot slot_of(TaskId id) const { return static_cast<Slot>(id / microbatches() % kSlots); }
  int stage_of(TaskId id) const { return id / (microbatches() * kSlots); }
  int microbatch_of(TaskId id) const { return id % microbatches(); }
  bool exists(TaskId id) const;
  /// All tasks of a rank: by stage, then slot, then microbatch.
  std::vector<TaskId> tasks_of_rank(int rank) const;
  /// True where the task adds into the weight gradient: W, or B of a stage
  /// with a full backward.
  bool accumulates(TaskId id) const;
  /// The task that adds this microbatch's weight gradient.
  /// REQUIRES: backward_of(stage) == Backward::kFull.
  TaskId accumulation_of(int stage, int microbatch) const {
    const TaskId weight = task_id(stage, Slot::kWeight, microbatch);
    return exists(weight) ? weight : task_id(stage, Slot::kBackward, microbatch);
  }
  /// With ordered accumulation, the task that waits for `id` to have added its
  /// weight gradient; else, or where there is none, kNoTask.
  TaskId next_accumulation(TaskId id) const;
  /// How many things must happen before the task is ready: inputs from
  /// predecessors (or the one root input), gradients from successors, the
  /// task before it in its own stage, and the accumulation before it.
  int dependencies(TaskId id) const;

  std::span<const Edge> edges() const { return edges_; }
  const Edge& edge(EdgeId id) const { return edges_[static_cast<std::size_t>(id)]; }
  /// Edges along which a task of this slot sends its output, ascending
  /// destination stage, local ones included, only those that carry.
  /// Slot::kWeight has none.
  std::span<const EdgeId> edges_from(int stage, Slot slot) const {
    return at(edges_from_, stage * kSlots + static_cast<int>(slot));
  }
  /// Edges along which a task of this slot gets its inputs, ascending source
  /// stage, local ones included, only those that carry. Slot::kWeight has none.
  std::span<const EdgeId> edges_to(int stage, Slot slot) const {
    return at(edges_to_, stage * kSlots + static_cast<int>(slot));
  }
  /// -1 where there is no such edge of the stage graph. `from` of a gradient
  /// is its sender.
  EdgeId find_edge(Kind kind, int from, int to) const;

 private:
  using Lists = std::vector<std::vector<int>>;

  explicit Program(ProgramSpec spec);
  static std::span<const int> at(const Lists& lists, int index) {
    return lists[static_cast<std::size_t>(index)];
  }

  ProgramSpec spec_;
  Lists predecessors_;
  Lists successors_;
  Lists stages_of_rank_;
  Lists edges_from_;
  Lists edges_to_;
  std::vector<Edge> edges_;                 // per edge of the graph: activation, gradient
  std::vector<std::ptrdiff_t> first_edge_;  // [stage]: of its edges to successors
  std::vector<bool> fused_;
};

}  // namespace rrfp
