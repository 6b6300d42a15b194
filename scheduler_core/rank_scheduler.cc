#include "scheduler_core/rank_scheduler.h"

#include <algorithm>
#include <limits>

namespace rrfp {

namespace {

constexpr std::int64_t kUnannounced = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kArrived = kUnannounced + 1;
// Of a word without members: larger than any room.
constexpr std::int64_t kNoBytes = std::numeric_limits<std::int64_t>::max();

__extension__ using Wide = __int128;

// floor(permille * ns / 1000), at most 2^61 so that adding times cannot
// overflow.
std::int64_t permille_of(std::int64_t permille, std::int64_t ns) {
  constexpr Wide kMost = Wide{1} << 61;
  return static_cast<std::int64_t>(std::min(Wide{permille} * ns / 1000, kMost));
}

}  // namespace

RankScheduler::RankScheduler(const Program& program, const Schedule& schedule,
                             const RankSchedulerConfig& config)
    : group_(program.microbatches()),
      microbatches_(program.microbatches()),
      // A reach of 0 is plain readiness-first: nothing is announced or waited for.
      anticipating_(config.anticipation && config.anticipation->reach_permille > 0),
      ordered_(program.ordered_accumulation()),
      windowed_(config.window != kNoWindow),
      queue_depth_(config.queue_depth),
      admission_(program, config.rank, config.memory, config.budget_bytes),
      program_(&program),
      config_(config),
      local_stage_(program.stages(), -1) {
  RRFP_CHECK(config.queue_depth >= 1 && config.window >= 0);
  const std::span<const int> stages = program.stages_of(config.rank);
  for (std::size_t i = 0; i < stages.size(); ++i) local_stage_[stages[i]] = static_cast<int>(i);
  if (stages.size() == 1) {
    only_stage_ = stages.front();
    first_task_ = program.task_id(only_stage_, Slot::kForward, 0);
  }
  build_hint(schedule.ranks[static_cast<std::size_t>(config.rank)]);
  build_groups();
  build_messages();
  build_accumulation();
  build_means();
  build_ready();
  reset();
}

void RankScheduler::build_hint(const std::vector<Task>& order) {
  const int stages = static_cast<int>(program_->stages_of(config_.rank).size());
  initial_ = FixedArray<LocalTask>(stages * kSlots * microbatches_);
  local_at_ = FixedArray<std::int32_t>(static_cast<int>(order.size()));
  for (int position = 0; position < size(); ++position) {
    const TaskId id = program_->find(order[static_cast<std::size_t>(position)]);
    RRFP_CHECK(id != kNoTask);
    local_at_[position] = local_of(id);
    LocalTask& local = initial_[local_at_[position]];
    RRFP_CHECK(local.unmet == kNoSuchTask);
    local.position = static_cast<std::uint32_t>(position) & ((1u << 18) - 1);
    local.unmet = static_cast<std::uint16_t>(program_->dependencies(id));
    const Task task = program_->task(id);
    if (program_->fused(task.stage, task.microbatch)) fused_ = true;
  }
  locals_ = FixedArray<LocalTask>(initial_.size());
}

void RankScheduler::build_groups() {
  const Program& program = *program_;
  groups_ = FixedArray<Group>(initial_.size() / microbatches_);
  std::vector<std::int32_t> dependents;
  for (int index = 0; index < groups_.size(); ++index) {
    const int local_stage = index / kSlots;
    const int stage = program.stages_of(config_.rank)[static_cast<std::size_t>(local_stage)];
    const auto slot = static_cast<Slot>(index % kSlots);
    Group& group = groups_[index];
    group.first_task = program.task_id(stage, slot, 0);
    group.local_stage = static_cast<std::int16_t>(local_stage);
    group.forward = slot == Slot::kForward;
    if (program.exists(group.first_task)) group.returns = returned_by(program, group.first_task);
    if (slot != Slot::kWeight) group.own_dependent = (index + 1) * microbatches_;
    group.first_dependent = static_cast<std::int32_t>(dependents.size());
    for (const EdgeId id : program.edges_from(stage, slot)) {
      const Edge& edge = program.edge(id);
      if (!edge.local()) continue;
      dependents.push_back(local_of(program.task_id(edge.to, slot, 0)));
      ++group.dependents;
    }
  }
  dependents_ = FixedArray<std::int32_t>(dependents);
}

void RankScheduler::build_messages() {
  if (!anticipating_) return;
  const Program& program = *program_;
  messages_ = FixedArray<GroupMessages>(groups_.size());
  std::vector<Output> outputs;
  std::vector<std::int32_t> producers;
  int inputs = 0;
  for (int index = 0; index < groups_.size(); ++index) {
    const TaskId first = groups_[index].first_task;
    const int stage = program.stage_of(first);
    const Slot slot = program.slot_of(first);
    GroupMessages& messages = messages_[index];
    messages.outputs.first = static_cast<std::int32_t>(outputs.size());
    messages.producers.first = static_cast<std::int32_t>(producers.size());
    messages.first_input = inputs;
    for (const EdgeId id : program.edges_from(stage, slot)) {
      const Edge& edge = program.edge(id);
      if (edge.local()) continue;
      outputs.push_back({{program.task_id(edge.to, slot, 0), stage, edge.to_rank, 0}, id});
    }
    std::span<const int> from;
    if (slot == Slot::kForward) from = program.predecessors(stage);
    if (slot == Slot::kBackward) from = program.successors(stage);
    producers.insert(producers.end(), from.begin(), from.end());
    inputs += static_cast<int>(from.size()) * microbatches_;
    messages.outputs.last = static_cast<std::int32_t>(outputs.size());
    messages.producers.last = static_cast<std::int32_t>(producers.size());
  }
  outputs_ = FixedArray<Output>(outputs);
  producers_ = FixedArray<std::int32_t>(producers);
  notices_ = FixedArray<Notice>(outputs_.size());
  input_eta_ns_ = FixedArray<std::int64_t>(inputs);
  announced_ = PositionSet(size());
}

void RankScheduler::build_accumulation() {
  if (!ordered_) return;
  next_accumulation_ = FixedArray<std::int32_t>(locals_.size(), -1);
  for (const std::int32_t local : local_at_) {
    const TaskId next = program_->next_accumulation(id_of(local));
    if (next != kNoTask) next_accumulation_[local] = local_of(next);
  }
}

void RankScheduler::build_means() {
  if (!config_.adapt_expected) return;
  mean_ns_ = FixedArray<std::int64_t>(groups_.size());
  FixedArray<std::int64_t> counts(groups_.size());
  for (const std::int32_t local : local_at_) {
    mean_ns_[group_of(local)] += config_.expected_ns[static_cast<std::size_t>(id_of(local))];
    ++counts[group_of(local)];
  }
  profile_ns_ = FixedArray<std::int64_t>(groups_.size());
  for (int i = 0; i < groups_.size(); ++i) {
    mean_ns_[i] /= std::max<std::int64_t>(counts[i], 1);
    profile_ns_[i] = mean_ns_[i];
  }
}

void RankScheduler::build_ready() {
  const bool limited = admission_.limited();
  const int stages = groups_.size() / kSlots;
  ready_ = FixedArray<ReadySet>(1 + (limited ? stages : 0));
  for (ReadySet& ready : ready_) ready.set = PositionSet(size());
  if (!limited) return;
  for (int local_stage = 0; local_stage < stages; ++local_stage) {
    LocalTask* const forward = &initial_[local_stage * kSlots * microbatches_];
    for (int m = 0; m < microbatches_; ++m) {
      forward[m].ready_set = static_cast<std::uint32_t>(1 + local_stage) & ((1u << 14) - 1);
    }
    if (admission_.uniform(local_stage)) continue;
    ready_[1 + local_stage].least_bytes =
        FixedArray<std::int64_t>(size() / PositionSet::kWordBits + 1, kNoBytes);
  }
}

void RankScheduler::reset() {
  std::copy(initial_.begin(), initial_.end(), locals_.begin());
  std::fill(input_eta_ns_.begin(), input_eta_ns_.end(), kUnannounced);
  admission_.reset();
  announced_.clear();
  for (ReadySet& ready : ready_) {
    ready.set.clear();
    std::fill(ready.least_bytes.begin(), ready.least_bytes.end(), kNoBytes);
  }
  notice_count_ = 0;
  held_ = 0;
  decided_count_ = 0;
  first_undecided_ = 0;
  expected_end_ns_ = 0;
}

int RankScheduler::local_of_many(TaskId task) const {
  const int stage = program_->stage_of(task);
  const int local_stage = local_stage_[stage];
  RRFP_CHECK(local_stage >= 0);
  return task + (local_stage - stage) * kSlots * microbatches_;
}

std::int64_t& RankScheduler::input_eta_ns(int local, int producer) {
  const GroupMessages& messages = messages_[group_of(local)];
  const std::int32_t* const first = producers_.begin() + messages.producers.first;
  const std::int32_t* const last = producers_.begin() + messages.producers.last;
  const std::int32_t* const found = std::find(first, last, producer);
  RRFP_CHECK(found != last);
  const int row = microbatch_of(local) * static_cast<int>(last - first);
  return input_eta_ns_[messages.first_input + row + static_cast<int>(found - first)];
}

void RankScheduler::note_arrival(int local, int producer) {
  std::int64_t& eta_ns = input_eta_ns(local, producer);
  RRFP_CHECK(eta_ns != kArrived);
  if (eta_ns != kUnannounced) --locals_[local].announced;
  eta_ns = kArrived;
}

void RankScheduler::on_notice(TaskId task, int producer, std::int64_t eta_ns) {
  if (!anticipating_) return;
  const int local = local_of(task);
  std::int64_t& known_ns = input_eta_ns(local, producer);
  if (known_ns == kArrived) return;
  RRFP_CHECK(known_ns == kUnannounced);
  known_ns = eta_ns;
  LocalTask& entry = locals_[local];
  if (++entry.announced == entry.unmet) announced_.insert(static_cast<int>(entry.position));
}

void RankScheduler::on_expected(int stage, Kind kind, std::int64_t ns) {
  if (!config_.adapt_expected) return;
  const Slot slot = kind == Kind::kForward          ? Slot::kForward
                    : kind == Kind::kWeightGradient ? Slot::kWeight
                                                    : Slot::kBackward;
  std::int64_t& mean_ns = mean_ns_[local_stage_[stage] * kSlots + static_cast<int>(slot)];
  mean_ns += (ns - mean_ns) / 8;
}

void RankScheduler::adopt_means(const RankScheduler& before) {
  if (mean_ns_.size() != before.mean_ns_.size()) return;
  for (int i = 0; i < mean_ns_.size(); ++i) {
    const std::int64_t profile_ns = before.profile_ns_[i];
    if (profile_ns == 0) continue;
    mean_ns_[i] = static_cast<std::int64_t>(Wide{profile_ns_[i]} * before.mean_ns_[i] / profile_ns);
  }
}

std::int64_t RankScheduler::activation_at(int position) const {
  const int local = local_at_[position];
  return admission_.activation(groups_[group_of(local)].local_stage, microbatch_of(local));
}

void RankScheduler::lower_least(ReadySet& ready, int position) {
  const int word = position / PositionSet::kWordBits;
  std::int64_t& least = ready.least_bytes[word];
  least = std::min(least, activation_at(position));
}

void RankScheduler::raise_least(ReadySet& ready, int position) {
  const int word = position / PositionSet::kWordBits;
  std::int64_t least = kNoBytes;
  for (std::uint64_t bits = ready.set.word(word); bits != 0; bits &= bits - 1) {
    const int member = word * PositionSet::kWordBits + std::countr_zero(bits);
    if (member < size()) least = std::min(least, activation_at(member));
  }
  ready.least_bytes[word] = least;
}

int RankScheduler::first_fitting_mixed(const ReadySet& ready, std::int64_t room) const {
  int position = ready.set.first();
  while (position < size()) {
    const int word = position / PositionSet::kWordBits;
    if (ready.least_bytes[word] > room) {
      position = ready.set.next(std::min((word + 1) * PositionSet::kWordBits, size()));
      continue;
    }
    if (activation_at(position) <= room) return position;
    position = ready.set.next(position + 1);
  }
  return size();
}

// The position of the one ready F that may take the token of its stage.
int RankScheduler::token_position(int local_stage) const {
  const int microbatch = admission_.token_microbatch(local_stage);
  if (microbatch < 0) return size();
  const LocalTask& task = locals_[local_stage * kSlots * microbatches_ + microbatch];
  const int position = static_cast<int>(task.position);
  return ready_[1 + local_stage].set.contains(position) ? position : size();
}

int RankScheduler::first_undecided() const {
  int position = first_undecided_;
  while (position < size() && locals_[local_at_[position]].unmet == kDecided) ++position;
  return position;
}

std::size_t RankScheduler::ready(std::span<TaskId> to) const {
  std::size_t count = 0;
  int from = 0;
  while (count < to.size()) {
    int position = size();
    for (const ReadySet& ready : ready_) position = std::min(position, ready.set.next(from));
    if (position == size()) break;
    to[count++] = task_at(position);
    from = position + 1;
  }
  return count;
}

// Positions below the result are inside the window.
int RankScheduler::window_end() {
  first_undecided_ = first_undecided();
  if (config_.window > size() - first_undecided_) return size();
  return first_undecided_ + config_.window;
}

WaitReason RankScheduler::why_idle(int best, int limit) const {
  if (best < size()) return WaitReason::kOrder;
  // With `best` at the end, only F of a stage with a budget can be ready.
  for (const ReadySet& ready : ready_) {
    if (ready.set.first() < limit) return WaitReason::kMemory;
  }
  return WaitReason::kNotReady;
}

std::int64_t RankScheduler::expected_ns(int local) const {
  const std::int64_t profile = config_.expected_ns[static_cast<std::size_t>(id_of(local))];
  if (!config_.adapt_expected) return profile;
  const int group = group_of(local);
  if (profile_ns_[group] == 0) return mean_ns_[group];
  return static_cast<std::int64_t>(Wide{profile} * mean_ns_[group] / profile_ns_[group]);
}

// REQUIRES: all unmet dependencies of the task are announced inputs. Arrived
// and unannounced inputs are below every real time.
std::int64_t RankScheduler::announced_eta_ns(int local) const {
  const GroupMessages& messages = messages_[group_of(local)];
  const int width = messages.producers.last - messages.producers.first;
  const std::int64_t* const first =
      input_eta_ns_.begin() + messages.first_input + microbatch_of(local) * width;
  return *std::max_element(first, first + width);
}

// When to decide again if a better task than the one at `position` is about
// to arrive.
std::optional<std::int64_t> RankScheduler::wait_until(int position, std::int64_t now_ns) const {
  int candidate = announced_.first();
  if (candidate > position) return std::nullopt;
  const std::int64_t length_ns = expected_ns(local_at_[position]);
  const std::int64_t grace_ns = permille_of(config_.anticipation->grace_permille, length_ns);
  std::int64_t least_ns = std::numeric_limits<std::int64_t>::max();
  for (; candidate < position; candidate = announced_.next(candidate + 1)) {
    const int local = local_at_[candidate];
    const std::int64_t eta_ns = announced_eta_ns(local);
    if (eta_ns >= least_ns || now_ns > eta_ns + grace_ns) continue;
    const Group& group = groups_[group_of(local)];
    if (group.forward && !admission_.admits(group.local_stage, microbatch_of(local))) continue;
    least_ns = eta_ns;
  }
  const std::int64_t reach_ns = permille_of(config_.anticipation->reach_permille, length_ns);
  if (least_ns == std::numeric_limits<std::int64_t>::max() || least_ns - now_ns > reach_ns) {
    return std::nullopt;
  }
  return least_ns + grace_ns + 1;
}

void RankScheduler::write_notices(int local, std::int64_t now_ns) {
  std::int64_t begin_ns = now_ns + config_.start_delay_ns;
  if (held_ > 0) begin_ns = std::max(begin_ns, expected_end_ns_);
  expected_end_ns_ = begin_ns + expected_ns(local);
  const Run outputs = messages_[group_of(local)].outputs;
  const int microbatch = microbatch_of(local);
  notice_count_ = 0;
  for (int i = outputs.first; i < outputs.last; ++i) {
    Notice& notice = notices_[static_cast<int>(notice_count_++)];
    notice = outputs_[i].notice;
    notice.task += microbatch;
    notice.eta_ns = expected_end_ns_ + config_.expected_transfer_ns[static_cast<std::size_t>(
                                           outputs_[i].edge * microbatches_ + microbatch)];
  }
}

}  // namespace rrfp
