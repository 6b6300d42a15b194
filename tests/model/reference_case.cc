#include "tests/model/reference_case.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "scheduler_core/schedule.h"

namespace rrfp::model {

namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// The sum of everything the arrays say about each microbatch.
std::vector<std::int64_t> cost_of_microbatches(const Case& given, Mutant mutant) {
  const std::vector<std::int64_t>& expected =
      given.expected_ns.empty() ? given.duration_ns : given.expected_ns;
  const int count = given.program.microbatches();
  std::vector<std::int64_t> cost(index(count), 0);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool forward = given.program.slot_of(static_cast<TaskId>(i)) == Slot::kForward;
    if (mutant == Mutant::kArrangeByForward && !forward) continue;
    cost[i % index(count)] += expected[i];
  }
  return cost;
}

std::vector<int> arrange(const Case& given, Mutant mutant) {
  std::vector<int> ascending(index(given.program.microbatches()));
  std::iota(ascending.begin(), ascending.end(), 0);
  if (given.policy.arrangement == Arrangement::kGiven) return ascending;
  const std::vector<std::int64_t> cost = cost_of_microbatches(given, mutant);
  std::stable_sort(ascending.begin(), ascending.end(),
                   [&](int a, int b) { return cost[index(a)] < cost[index(b)]; });
  if (given.policy.arrangement == Arrangement::kAscending) return ascending;
  std::vector<int> hill;
  for (std::size_t i = 0; i < ascending.size(); i += 2) hill.push_back(ascending[i]);
  for (std::size_t i = ascending.size(); i-- > 0;) {
    if (i % 2 == 1) hill.push_back(ascending[i]);
  }
  return hill;
}

// Rows of one number per microbatch, each row permuted.
void permute(std::vector<std::int64_t>& rows, const std::vector<int>& arrangement) {
  const std::vector<std::int64_t> given = rows;
  const std::size_t count = arrangement.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = given[i / count * count + index(arrangement[i % count])];
  }
}

Case arranged_case(Case given, const std::vector<int>& arrangement) {
  for (auto* rows :
       {&given.duration_ns, &given.expected_ns, &given.input_ready_ns, &given.network.message_bytes,
        &given.memory.activation_bytes, &given.memory.weight_stash_bytes}) {
    permute(*rows, arrangement);
  }
  for (auto& rows : given.network.latency_ns) permute(rows, arrangement);
  for (auto& rows : given.network.expected_latency_ns) permute(rows, arrangement);
  return given;
}

// The one task of (stage, microbatch) that adds into the weight gradient.
TaskId accumulating_task(const Program& program, int stage, int microbatch) {
  for (const Slot slot : {Slot::kWeight, Slot::kBackward}) {
    const TaskId id = program.task_id(stage, slot, microbatch);
    if (program.exists(id)) return id;
  }
  return kNoTask;
}

std::vector<Dependency> dependencies_of(const Program& program, TaskId id, Mutant mutant) {
  using What = Dependency::What;
  const int stage = program.stage_of(id);
  const int microbatch = program.microbatch_of(id);
  std::vector<Dependency> result;
  switch (program.slot_of(id)) {
    case Slot::kForward:
      if (program.predecessors(stage).empty()) result.push_back({What::kInput, kNoTask, -1});
      for (const int before : program.predecessors(stage)) {
        result.push_back(
            {What::kMessage, kNoTask, program.find_edge(Kind::kForward, before, stage)});
      }
      break;
    case Slot::kBackward:
      result.push_back({What::kFinish, program.task_id(stage, Slot::kForward, microbatch), -1});
      for (const int after : program.successors(stage)) {
        result.push_back(
            {What::kMessage, kNoTask, program.find_edge(Kind::kBackward, after, stage)});
      }
      break;
    case Slot::kWeight:
      result.push_back({What::kFinish, program.task_id(stage, Slot::kBackward, microbatch), -1});
      break;
  }
  if (mutant != Mutant::kAccumulationUnordered && program.ordered_accumulation() &&
      program.backward_of(stage) == Backward::kFull && microbatch > 0 &&
      accumulating_task(program, stage, microbatch) == id) {
    result.push_back({What::kFinish, accumulating_task(program, stage, microbatch - 1), -1});
  }
  return result;
}

// A fused backward takes as long as its two halves; one without a weight
// gradient has only the first.
std::vector<std::int64_t> task_lengths(const Program& program,
                                       const std::vector<std::int64_t>& given, Mutant mutant) {
  std::vector<std::int64_t> lengths = given;
  lengths.resize(index(program.task_ids()), 0);
  for (int stage = 0; stage < program.stages(); ++stage) {
    for (int microbatch = 0; microbatch < program.microbatches(); ++microbatch) {
      if (!program.fused(stage, microbatch) || mutant == Mutant::kFusedIsInputOnly) continue;
      if (program.backward_of(stage) != Backward::kFull) continue;
      lengths[index(program.task_id(stage, Slot::kBackward, microbatch))] +=
          lengths[index(program.task_id(stage, Slot::kWeight, microbatch))];
    }
  }
  return lengths;
}

Result<void> check(const ReferenceCase& ready) {
  for (std::size_t i = 0; i < ready.activation_bytes.size(); ++i) {
    if (ready.stash_bytes[i] > ready.activation_bytes[i]) {
      return Error{"weight_stash_bytes above activation_bytes at entry " + std::to_string(i)};
    }
  }
  for (int rank = 0; rank < ready.program.ranks(); ++rank) {
    std::int64_t least = 0;
    for (const int stage : ready.program.stages_of(rank)) least += ready.token_bytes(stage);
    if (ready.budget_bytes(rank).value_or(least) < least) {
      return Error{"rank " + std::to_string(rank) + ": budget " +
                   std::to_string(*ready.budget_bytes(rank)) + " is below the least that works, " +
                   std::to_string(least)};
    }
  }
  if (ready.arranged.queue_depth < 1) return Error{"queue_depth must be at least 1"};
  if (ready.rendezvous() && ready.arranged.policy.window != 1) {
    return Error{"rendezvous needs a window of 1"};
  }
  if (ready.arranged.network.mode == NetworkMode::kLaunchQueue) {
    return Error{"the reference does not know the launch-queue mode"};
  }
  return {};
}

// Everything that follows from the arranged case, its fitted program and its hint.
void fill(ReferenceCase& ready, const Schedule& schedule, Mutant mutant) {
  const Program& program = ready.program;
  const Case& arranged = ready.arranged;
  ready.duration_ns = task_lengths(program, arranged.duration_ns, mutant);
  ready.expected_ns = task_lengths(
      program, arranged.expected_ns.empty() ? arranged.duration_ns : arranged.expected_ns, mutant);
  ready.position.assign(index(program.task_ids()), -1);
  for (const std::vector<Task>& order : schedule.ranks) {
    ready.hint.emplace_back();
    for (const Task& task : order) {
      const TaskId id = program.find(task);
      ready.position[index(id)] = static_cast<int>(ready.hint.back().size());
      ready.hint.back().push_back(id);
    }
  }
  ready.dependencies.resize(index(program.task_ids()));
  for (TaskId id = 0; id < program.task_ids(); ++id) {
    if (program.exists(id)) ready.dependencies[index(id)] = dependencies_of(program, id, mutant);
  }
  const std::size_t size = index(program.stages()) * index(program.microbatches());
  ready.activation_bytes = arranged.memory.activation_bytes;
  ready.activation_bytes.resize(size, 0);
  ready.stash_bytes = arranged.memory.weight_stash_bytes.empty()
                          ? ready.activation_bytes
                          : arranged.memory.weight_stash_bytes;
}

}  // namespace

std::int64_t ReferenceCase::input_ready_ns(int microbatch) const {
  return arranged.input_ready_ns.empty() ? 0 : arranged.input_ready_ns[index(microbatch)];
}

std::optional<std::int64_t> ReferenceCase::budget_bytes(int rank) const {
  if (arranged.memory.budget_bytes.empty()) return std::nullopt;
  return arranged.memory.budget_bytes[index(rank)];
}

std::int64_t ReferenceCase::token_bytes(int stage) const {
  std::int64_t largest = 0;
  for (int m = 0; m < program.microbatches(); ++m) {
    largest = std::max(largest, activation_bytes[index(stage * program.microbatches() + m)]);
  }
  return largest;
}

bool ReferenceCase::shares() const {
  if (program.ordered_accumulation()) return false;
  for (int stage = 0; stage < program.stages(); ++stage) {
    if (program.predecessors(stage).size() > 1) return false;
  }
  return true;
}

std::int64_t ReferenceCase::message_bytes(EdgeId edge, int microbatch) const {
  if (arranged.network.message_bytes.empty()) return 0;
  const Edge& along = program.edge(edge);
  const Slot slot = along.kind == Kind::kForward ? Slot::kForward : Slot::kBackward;
  return arranged.network.message_bytes[index(program.task_id(along.from, slot, microbatch))];
}

std::int64_t ReferenceCase::busy_ns(EdgeId edge, int microbatch) const {
  __extension__ using Wide = __int128;
  const std::int64_t rate = arranged.network.bytes_per_second;
  if (rate == 0) return 0;
  const Wide scaled = Wide{message_bytes(edge, microbatch)} * 1'000'000'000;
  return static_cast<std::int64_t>((scaled + rate - 1) / rate);
}

std::int64_t ReferenceCase::latency_ns(EdgeId edge, int microbatch, int lane) const {
  if (arranged.network.latency_ns.empty()) return 0;
  const std::vector<std::int64_t>& rows = arranged.network.latency_ns[index(edge)];
  return rows.empty() ? 0 : rows[index(lane * program.microbatches() + microbatch)];
}

std::int64_t ReferenceCase::group_latency_ns(EdgeId edge, int microbatch) const {
  const TensorParallel& tensor = arranged.tensor_parallel;
  std::int64_t latest = latency_ns(edge, microbatch, 0);
  if (tensor.coordination == Coordination::kLeader) return latest;
  for (int lane = 1; lane < tensor.lanes; ++lane) {
    latest = std::max(latest, latency_ns(edge, microbatch, lane) + tensor.vote_ns);
  }
  return latest;
}

std::int64_t ReferenceCase::slowest_latency_ns(EdgeId edge, int microbatch) const {
  std::int64_t latest = 0;
  for (int lane = 0; lane < arranged.tensor_parallel.lanes; ++lane) {
    latest = std::max(latest, latency_ns(edge, microbatch, lane));
  }
  return latest;
}

std::int64_t ReferenceCase::expected_latency_ns(EdgeId edge, int microbatch) const {
  const auto& given = arranged.network.expected_latency_ns;
  if (given.empty() || given[index(edge)].empty()) return group_latency_ns(edge, microbatch);
  return given[index(edge)][index(microbatch)];
}

std::int64_t ReferenceCase::announce_ns() const {
  if (rendezvous() || arranged.tensor_parallel.lanes == 1) return 0;
  return arranged.tensor_parallel.announce_ns;
}

int ReferenceCase::queue_depth() const { return rendezvous() ? 1 : arranged.queue_depth; }

Result<ReferenceCase> prepare_case(const Case& given, Mutant mutant) {
  const std::vector<int> arrangement = arrange(given, mutant);
  Case arranged = arranged_case(given, arrangement);
  const std::vector<std::int64_t>& expected =
      arranged.expected_ns.empty() ? arranged.duration_ns : arranged.expected_ns;
  ScheduleContext context;
  context.hint = &arranged.policy.hint;
  context.expected_ns = expected;
  const Result<Schedule> schedule = make_schedule(arranged.policy.hint, arranged.program, context);
  if (!schedule.ok()) return schedule.error();
  Result<Program> fitted = fit_program(arranged.program, *schedule);
  if (!fitted.ok()) return fitted.error();
  ReferenceCase ready{
      std::move(arranged), arrangement, *std::move(fitted), {}, {}, {}, {}, {}, {}, {}};
  fill(ready, *schedule, mutant);
  if (const Result<void> checked = check(ready); !checked.ok()) return checked.error();
  return ready;
}

}  // namespace rrfp::model
