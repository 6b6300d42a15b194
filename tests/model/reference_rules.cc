// What a rank decides, and what its memory allows.
#include <algorithm>

#include "tests/model/reference_run.h"

namespace rrfp::model {

bool ReferenceRun::met(const Dependency& dependency, int microbatch) const {
  switch (dependency.what) {
    case Dependency::What::kInput:
      return case_.input_ready_ns(microbatch) <= now_ns_;
    case Dependency::What::kFinish:
      return state(dependency.task).finished;
    case Dependency::What::kMessage:
      break;
  }
  const MessageState* message = find_message({dependency.edge, microbatch});
  return message != nullptr && message->arrived;
}

bool ReferenceRun::is_ready(TaskId id) const {
  for (const Dependency& dependency : case_.dependencies[static_cast<std::size_t>(id)]) {
    if (!met(dependency, program().microbatch_of(id))) return false;
  }
  return true;
}

// Nothing where the task is ready, or waits for anything that is not announced.
std::optional<std::int64_t> ReferenceRun::announced_eta(TaskId id) const {
  const int microbatch = program().microbatch_of(id);
  std::optional<std::int64_t> latest;
  for (const Dependency& dependency : case_.dependencies[static_cast<std::size_t>(id)]) {
    if (met(dependency, microbatch)) continue;
    if (dependency.what != Dependency::What::kMessage) return std::nullopt;
    const MessageState* message = find_message({dependency.edge, microbatch});
    if (message == nullptr || !message->eta_ns) return std::nullopt;
    latest = std::max(latest.value_or(*message->eta_ns), *message->eta_ns);
  }
  return latest;
}

int ReferenceRun::first_open_position(int rank) const {
  int open = 0;
  for (const TaskId id : hint(rank)) {
    if (!state(id).decided) return open;
    ++open;
  }
  return open;
}

bool ReferenceRun::in_window(TaskId id) const {
  const int window = case_.arranged.policy.window;
  if (window == kNoWindow) return true;
  const int first = first_open_position(rank_of(id));
  int used = case_.position[static_cast<std::size_t>(id)] - first;
  if (is(Mutant::kWindowSlides)) {
    for (const TaskId other : hint(rank_of(id))) {
      const int position = case_.position[static_cast<std::size_t>(other)];
      if (state(other).decided && position >= first &&
          position < case_.position[static_cast<std::size_t>(id)]) {
        --used;
      }
    }
  }
  return used < window;
}

TaskId ReferenceRun::first_startable(int rank) const {
  TaskId best = kNoTask;
  for (const TaskId id : hint(rank)) {
    if (state(id).decided || !in_window(id) || !is_ready(id) || !is_admissible(id)) continue;
    best = id;
    if (!is(Mutant::kHintReversed)) break;
  }
  return best;
}

std::int64_t ReferenceRun::permille(std::int64_t share, TaskId id) const {
  __extension__ using Wide = __int128;
  const Wide product = Wide{share} * case_.expected_ns[static_cast<std::size_t>(id)];
  return static_cast<std::int64_t>(product / 1000);
}

// Whether the rank waits for a better task that is about to arrive, rather
// than start `best`; if so, the end of the wait is an event.
bool ReferenceRun::must_wait(int rank, TaskId best) {
  const std::optional<Anticipation>& policy = case_.arranged.policy.anticipation;
  if (!policy || policy->reach_permille == 0) return false;
  std::int64_t grace_ns = permille(policy->grace_permille, best);
  if (is(Mutant::kGraceIgnored)) grace_ns = 0;
  std::optional<std::int64_t> least_eta;
  TaskId awaited = kNoTask;
  for (const TaskId id : hint(rank)) {
    if (id == best) break;
    if (state(id).decided || !in_window(id) || !is_admissible(id)) continue;
    const std::optional<std::int64_t> eta = announced_eta(id);
    if (!eta || now_ns_ > *eta + grace_ns) continue;
    const bool better =
        !least_eta || (is(Mutant::kWaitsForTheLatest) ? *eta > *least_eta : *eta < *least_eta);
    if (better) {
      least_eta = eta;
      awaited = id;
    }
  }
  if (!least_eta) return false;
  const std::int64_t reach_ns =
      permille(policy->reach_permille, is(Mutant::kReachOfTheAwaited) ? awaited : best);
  if (is(Mutant::kZeroReachNeverWaits) && reach_ns == 0) return false;
  if (*least_eta - now_ns_ > reach_ns) return false;
  push(*least_eta + grace_ns + 1, {});
  return true;
}

void ReferenceRun::decide(int rank) {
  RankState& self = rank_state(rank);
  self.anticipating = false;
  if (case_.rendezvous() && !self.phase.empty()) return;
  const int depth = case_.queue_depth();
  while (static_cast<int>(self.held.size()) < depth) {
    const TaskId best = first_startable(rank);
    if (best == kNoTask) return;
    if (must_wait(rank, best)) {
      self.anticipating = true;
      return;
    }
    start(rank, best);
  }
}

std::int64_t ReferenceRun::earliest_start(int rank, TaskId id) const {
  const RankState& self = rank_state(rank);
  const std::int64_t announce_ns = case_.announce_ns();
  const std::int64_t previous_end_ns = self.started.empty() ? 0 : state(self.started.back()).end_ns;
  std::int64_t start_ns =
      std::max(now_ns_ + case_.arranged.dispatch_ns + announce_ns, previous_end_ns);
  if (is(Mutant::kDispatchAfterPrevious)) {
    start_ns = std::max(now_ns_, previous_end_ns) + case_.arranged.dispatch_ns + announce_ns;
  }
  const bool leader = case_.arranged.tensor_parallel.coordination == Coordination::kLeader;
  if (!leader || is(Mutant::kLanesOfLeaderForgotten)) return start_ns;
  for (const Dependency& dependency : case_.dependencies[static_cast<std::size_t>(id)]) {
    if (dependency.what != Dependency::What::kMessage) continue;
    const MessageState* message = find_message({dependency.edge, program().microbatch_of(id)});
    start_ns = std::max(start_ns, message->last_lane_ns);
  }
  return start_ns;
}

void ReferenceRun::start(int rank, TaskId id) {
  RankState& self = rank_state(rank);
  TaskState& task = state(id);
  task.decided_ns = now_ns_;
  task.start_ns = earliest_start(rank, id);
  task.end_ns = task.start_ns + case_.duration_ns[static_cast<std::size_t>(id)];
  announce(rank, id);
  take_memory(rank, id);
  task.decided = true;
  self.started.push_back(id);
  self.held.push_back(id);
  push(task.start_ns, {});
  push(task.end_ns, {Event::What::kFinish, id, {}, 0});
}

// REQUIRES: `id` is not among the rank's held tasks yet.
void ReferenceRun::announce(int rank, TaskId id) {
  const RankState& self = rank_state(rank);
  std::int64_t from_ns = now_ns_ + case_.announce_ns() + case_.arranged.dispatch_ns;
  if (!self.held.empty() && !is(Mutant::kNoticeWithoutQueue)) {
    from_ns = std::max(from_ns, state(self.held.back()).expected_end_ns);
  }
  state(id).expected_end_ns = from_ns + case_.expected_ns[static_cast<std::size_t>(id)];
  if (is(Mutant::kNoticeIgnored)) return;
  const int microbatch = program().microbatch_of(id);
  for (const EdgeId edge : program().edges_from(program().stage_of(id), program().slot_of(id))) {
    if (program().edge(edge).local()) continue;
    const std::int64_t busy_ns =
        is(Mutant::kNoticeWithoutBusy) ? 0 : case_.busy_ns(edge, microbatch);
    const std::int64_t eta_ns =
        state(id).expected_end_ns + busy_ns + case_.expected_latency_ns(edge, microbatch);
    push(now_ns_ + case_.arranged.network.notice_ns,
         {Event::What::kNotice, kNoTask, {edge, microbatch}, eta_ns});
  }
}

bool ReferenceRun::by_shares() const {
  if (is(Mutant::kSharesEverywhere)) return true;
  if (is(Mutant::kOldestFirstEverywhere)) return false;
  return case_.shares();
}

bool ReferenceRun::is_admissible(TaskId id) const {
  if (program().slot_of(id) != Slot::kForward) return true;
  const std::optional<std::int64_t> budget = case_.budget_bytes(rank_of(id));
  if (!budget) return true;
  return by_shares() ? admits_by_shares(id, *budget) : admits_oldest_first(id, *budget);
}

std::int64_t ReferenceRun::bytes_of_stage(int stage) const {
  std::int64_t sum = 0;
  for (int m = 0; m < program().microbatches(); ++m) {
    sum += held_by_activation_[static_cast<std::size_t>(stage * program().microbatches() + m)];
  }
  return sum;
}

bool ReferenceRun::admits_by_shares(TaskId id, std::int64_t budget) const {
  std::int64_t sum = 0;
  for (const int stage : program().stages_of(rank_of(id))) {
    std::int64_t held = bytes_of_stage(stage);
    if (stage == program().stage_of(id)) held += case_.activation_bytes[flat(id)];
    sum += std::max(held, case_.token_bytes(stage));
  }
  return sum <= budget;
}

bool ReferenceRun::may_take_token(TaskId id) const {
  const int stage = program().stage_of(id);
  if (token_holder_.contains(stage)) return false;
  if (is(Mutant::kTokenForAnyMicrobatch)) return true;
  for (int m = 0; m < program().microbatch_of(id); ++m) {
    if (!state(program().task_id(stage, Slot::kForward, m)).decided) return false;
  }
  return true;
}

bool ReferenceRun::admits_oldest_first(TaskId id, std::int64_t budget) const {
  if (may_take_token(id)) return true;
  std::int64_t pool = budget - rank_state(rank_of(id)).pool_used_bytes;
  for (const int stage : program().stages_of(rank_of(id))) pool -= case_.token_bytes(stage);
  return case_.activation_bytes[flat(id)] <= pool;
}

void ReferenceRun::take_memory(int rank, TaskId id) {
  if (program().slot_of(id) != Slot::kForward) return;
  RankState& self = rank_state(rank);
  const std::int64_t bytes = case_.activation_bytes[flat(id)];
  if (may_take_token(id)) {
    token_holder_[program().stage_of(id)] = program().microbatch_of(id);
    state(id).holds_token = true;
  } else {
    self.pool_used_bytes += bytes;
  }
  held_by_activation_[flat(id)] = bytes;
  self.bytes += bytes;
  self.peak_bytes = std::max(self.peak_bytes, self.bytes);
  // The activations it received are used from here on.
  for (const Dependency& dependency : case_.dependencies[static_cast<std::size_t>(id)]) {
    if (case_.rendezvous() || dependency.what != Dependency::What::kMessage) continue;
    if (program().edge(dependency.edge).local()) continue;
    if (is(Mutant::kInboxNeverLeft)) continue;
    self.inbox_bytes -= case_.message_bytes(dependency.edge, program().microbatch_of(id));
  }
}

// What the finish of `id` frees.
void ReferenceRun::release_memory(TaskId id) {
  const int stage = program().stage_of(id);
  const int microbatch = program().microbatch_of(id);
  const TaskId forward = program().task_id(stage, Slot::kForward, microbatch);
  const bool frozen = program().backward_of(stage) == Backward::kNone;
  const bool weight_comes = program().slot_of(id) == Slot::kBackward &&
                            program().exists(program().task_id(stage, Slot::kWeight, microbatch));
  if (id == forward && (!frozen || is(Mutant::kFrozenKeepsActivation))) return;
  const bool keeps_stash = weight_comes && !is(Mutant::kStashFreedWithInput);
  const std::int64_t kept = keeps_stash ? case_.stash_bytes[flat(id)] : 0;
  const std::int64_t freed = held_by_activation_[flat(id)] - kept;
  held_by_activation_[flat(id)] = kept;
  rank_state(rank_of(id)).bytes -= freed;
  if (!state(forward).holds_token) {
    rank_state(rank_of(id)).pool_used_bytes -= freed;
  } else if (!weight_comes && !is(Mutant::kTokenNotReturned)) {
    token_holder_.erase(stage);
  }
}

}  // namespace rrfp::model
