#include "scheduler_core/program.h"

#include <algorithm>

#include "scheduler_core/position_set.h"

namespace rrfp {

namespace {

Error stage_error(std::size_t stage, const std::string& what) {
  return Error{"stage " + std::to_string(stage) + ": " + what};
}

Result<void> check_predecessors(const ProgramSpec& spec, std::size_t stage) {
  const StageSpec& self = spec.stages[stage];
  std::vector<int> sorted = self.predecessors;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    return stage_error(stage, "a predecessor is named twice");
  }
  for (const int before : sorted) {
    if (before < 0 || before >= static_cast<int>(stage)) {
      return stage_error(stage, "predecessor " + std::to_string(before) +
                                    " must be a lower stage number, 0 to " +
                                    std::to_string(static_cast<int>(stage) - 1));
    }
    if (self.backward == Backward::kNone &&
        spec.stages[static_cast<std::size_t>(before)].backward != Backward::kNone) {
      return stage_error(stage, "has backward \"none\" but its predecessor " +
                                    std::to_string(before) +
                                    " needs a gradient from it; a frozen stage may only follow "
                                    "frozen stages");
    }
  }
  return {};
}

// There and back along every edge, for every microbatch.
Result<void> check_messages(const ProgramSpec& spec) {
  std::size_t edges = 0;
  for (const StageSpec& stage : spec.stages) edges += 2 * stage.predecessors.size();
  if (edges > kMostEdges) {
    return Error{"the stages have " + std::to_string(edges / 2) + " predecessors; at most " +
                 std::to_string(kMostEdges / 2)};
  }
  const std::int64_t messages = static_cast<std::int64_t>(edges) * spec.microbatches;
  if (messages > kMostMessages) {
    return Error{"predecessors times microbatches is too large: " + std::to_string(messages / 2) +
                 "; at most " + std::to_string(kMostMessages / 2)};
  }
  return {};
}

Result<void> check_spec(const ProgramSpec& spec) {
  if (spec.ranks < 1 || spec.ranks > kMostRanks) {
    return Error{"ranks is " + std::to_string(spec.ranks) + "; at least 1, at most " +
                 std::to_string(kMostRanks)};
  }
  if (spec.microbatches < 1) {
    return Error{"microbatches is " + std::to_string(spec.microbatches) + "; at least 1"};
  }
  if (spec.stages.empty()) return Error{"stages is empty; at least one stage"};
  if (spec.stages.size() > kMostStages) {
    return Error{"there are " + std::to_string(spec.stages.size()) + " stages; at most " +
                 std::to_string(kMostStages)};
  }
  const std::int64_t ids =
      static_cast<std::int64_t>(spec.stages.size()) * kSlots * spec.microbatches;
  if (ids > (std::int64_t{1} << 28)) {
    return Error{"stages times microbatches is too large: " + std::to_string(ids / kSlots) +
                 "; at most " + std::to_string((std::int64_t{1} << 28) / kSlots)};
  }
  std::vector<std::int64_t> tasks(static_cast<std::size_t>(spec.ranks), 0);
  for (std::size_t stage = 0; stage < spec.stages.size(); ++stage) {
    const int rank = spec.stages[stage].rank;
    if (rank < 0 || rank >= spec.ranks) {
      return stage_error(stage, "rank " + std::to_string(rank) + " is not one of 0 to " +
                                    std::to_string(spec.ranks - 1));
    }
    if (Result<void> checked = check_predecessors(spec, stage); !checked.ok()) return checked;
    std::int64_t& of_rank = tasks[static_cast<std::size_t>(rank)];
    of_rank += std::int64_t{kSlots} * spec.microbatches;
    if (of_rank > PositionSet::kMostPositions) {
      return Error{"rank " + std::to_string(rank) +
                   " holds too many stages and microbatches: " + std::to_string(of_rank) +
                   " tasks; at most " + std::to_string(PositionSet::kMostPositions)};
    }
  }
  return check_messages(spec);
}

}  // namespace

Result<Program> Program::create(ProgramSpec spec) {
  if (Result<void> checked = check_spec(spec); !checked.ok()) return checked.error();
  return Program(std::move(spec));
}

Program::Program(ProgramSpec spec) : spec_(std::move(spec)) {
  const std::size_t count = spec_.stages.size();
  predecessors_.resize(count);
  successors_.resize(count);
  stages_of_rank_.resize(static_cast<std::size_t>(spec_.ranks));
  edges_from_.resize(count * kSlots);
  edges_to_.resize(count * kSlots);
  for (std::size_t stage = 0; stage < count; ++stage) {
    const StageSpec& self = spec_.stages[stage];
    predecessors_[stage] = self.predecessors;
    std::sort(predecessors_[stage].begin(), predecessors_[stage].end());
    stages_of_rank_[static_cast<std::size_t>(self.rank)].push_back(static_cast<int>(stage));
    for (const int before : predecessors_[stage]) {
      successors_[static_cast<std::size_t>(before)].push_back(static_cast<int>(stage));
    }
  }
  for (int from = 0; from < stages(); ++from) {
    first_edge_.push_back(static_cast<std::ptrdiff_t>(edges_.size() / 2));
    for (const int to : successors(from)) {
      edges_.push_back({from, to, Kind::kForward, rank_of(from), rank_of(to), true});
      edges_.push_back({to, from, Kind::kBackward, rank_of(to), rank_of(from),
                        backward_of(from) != Backward::kNone});
    }
  }
  for (std::size_t id = 0; id < edges_.size(); ++id) {
    const Edge& edge = edges_[id];
    if (!edge.carries) continue;
    const int slot = static_cast<int>(edge.slot());
    edges_from_[static_cast<std::size_t>(edge.from * kSlots + slot)].push_back(
        static_cast<EdgeId>(id));
    edges_to_[static_cast<std::size_t>(edge.to * kSlots + slot)].push_back(static_cast<EdgeId>(id));
  }
  for (std::vector<int>& list : edges_from_) {
    std::sort(list.begin(), list.end(), [this](int a, int b) { return edge(a).to < edge(b).to; });
  }
  for (std::vector<int>& list : edges_to_) {
    std::sort(list.begin(), list.end(),
              [this](int a, int b) { return edge(a).from < edge(b).from; });
  }
}

Program Program::with_fused(std::vector<bool> fused) const {
  RRFP_CHECK(split_backward());
  RRFP_CHECK(fused.size() == static_cast<std::size_t>(stages() * microbatches()));
  Program copy = *this;
  copy.fused_ = std::move(fused);
  return copy;
}

bool Program::one_stage_per_rank() const {
  if (ranks() != stages()) return false;
  for (int stage = 0; stage < stages(); ++stage) {
    if (rank_of(stage) != stage) return false;
  }
  return true;
}

TaskId Program::find(const Task& task) const {
  if (task.stage < 0 || task.stage >= stages()) return kNoTask;
  if (task.microbatch < 0 || task.microbatch >= microbatches()) return kNoTask;
  const Slot slot = task.kind == Kind::kForward          ? Slot::kForward
                    : task.kind == Kind::kWeightGradient ? Slot::kWeight
                                                         : Slot::kBackward;
  const TaskId id = task_id(task.stage, slot, task.microbatch);
  return exists(id) && this->task(id).kind == task.kind ? id : kNoTask;
}

Task Program::task(TaskId id) const {
  const int stage = stage_of(id);
  const int microbatch = microbatch_of(id);
  switch (slot_of(id)) {
    case Slot::kForward:
      return {stage, Kind::kForward, microbatch};
    case Slot::kWeight:
      return {stage, Kind::kWeightGradient, microbatch};
    case Slot::kBackward:
      break;
  }
  const bool whole = !split_backward() || fused(stage, microbatch);
  return {stage, whole ? Kind::kBackward : Kind::kInputGradient, microbatch};
}

bool Program::exists(TaskId id) const {
  const int stage = stage_of(id);
  switch (slot_of(id)) {
    case Slot::kForward:
      return true;
    case Slot::kBackward:
      return backward_of(stage) != Backward::kNone;
    case Slot::kWeight:
      break;
  }
  return split_backward() && backward_of(stage) == Backward::kFull &&
         !fused(stage, microbatch_of(id));
}

std::vector<TaskId> Program::tasks_of_rank(int rank) const {
  std::vector<TaskId> tasks;
  for (const int stage : stages_of(rank)) {
    const TaskId first = task_id(stage, Slot::kForward, 0);
    for (TaskId id = first; id < first + kSlots * microbatches(); ++id) {
      if (exists(id)) tasks.push_back(id);
    }
  }
  return tasks;
}

bool Program::accumulates(TaskId id) const {
  if (backward_of(stage_of(id)) != Backward::kFull) return false;
  const Kind kind = task(id).kind;
  return kind == Kind::kWeightGradient || kind == Kind::kBackward;
}

TaskId Program::next_accumulation(TaskId id) const {
  const int next = microbatch_of(id) + 1;
  if (!ordered_accumulation() || !accumulates(id) || next == microbatches()) return kNoTask;
  return accumulation_of(stage_of(id), next);
}

int Program::dependencies(TaskId id) const {
  const int stage = stage_of(id);
  int count = 1;  // a root's input, the own F of a backward, the own I of a W
  if (slot_of(id) == Slot::kForward && !predecessors(stage).empty()) {
    count = static_cast<int>(predecessors(stage).size());
  }
  if (slot_of(id) == Slot::kBackward) count += static_cast<int>(successors(stage).size());
  if (ordered_accumulation() && accumulates(id) && microbatch_of(id) > 0) ++count;
  return count;
}

EdgeId Program::find_edge(Kind kind, int from, int to) const {
  if (from < 0 || from >= stages()) return -1;
  // An edge and its way back have neighbouring numbers, the activation's first.
  const bool forward = kind == Kind::kForward;
  if (kind != Kind::kBackward && !forward) return -1;
  const int low = forward ? from : to;
  const int high = forward ? to : from;
  if (low < 0 || low >= stages()) return -1;
  const std::span<const int> after = successors(low);
  const auto found = std::lower_bound(after.begin(), after.end(), high);
  if (found == after.end() || *found != high) return -1;
  const auto pair = first_edge_[static_cast<std::size_t>(low)] + (found - after.begin());
  return static_cast<EdgeId>(2 * pair + (forward ? 0 : 1));
}

}  // namespace rrfp
