#include "scheduler_core/rank_scheduler.h"

#include <algorithm>
#include <limits>

namespace rrfp {

namespace {

constexpr std::int64_t kUnannounced = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kArrived = kUnannounced + 1;

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
    : program_(&program),
      config_(config),
      microbatches_(program.microbatches()),
      only_stage_(-1),
      first_task_(0),
      local_stage_(static_cast<std::size_t>(program.stages()), -1),
      admission_(program, config.rank, config.memory, config.budget_bytes) {
  RRFP_CHECK(config.queue_depth >= 1);
  // A reach of 0 is plain readiness-first: nothing is announced or waited for.
  if (config_.anticipation && config_.anticipation->reach_permille == 0) {
    config_.anticipation.reset();
  }
  const std::span<const int> stages = program.stages_of(config.rank);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    local_stage_[static_cast<std::size_t>(stages[i])] = static_cast<int>(i);
  }
  if (stages.size() == 1) {
    only_stage_ = stages.front();
    first_task_ = program.task_id(only_stage_, Slot::kForward, 0);
  }
  build_hint(schedule);
  build_groups();
  build_gates();
  reset();
}

void RankScheduler::build_hint(const Schedule& schedule) {
  const Program& program = *program_;
  const std::size_t locals =
      program.stages_of(config_.rank).size() * kSlots * static_cast<std::size_t>(microbatches_);
  position_.assign(locals, -1);
  initial_.assign(locals, Unmet{kNoSuchTask, 0});
  for (const Task& task : schedule.ranks[static_cast<std::size_t>(config_.rank)]) {
    const TaskId id = program.find(task);
    RRFP_CHECK(id != kNoTask);
    HintTask entry;
    entry.id = id;
    entry.local = local_of(id);
    entry.microbatch = task.microbatch;
    entry.local_stage =
        static_cast<std::int16_t>(local_stage_[static_cast<std::size_t>(task.stage)]);
    const Slot slot = program.slot_of(id);
    entry.group = static_cast<std::int16_t>(entry.local_stage * kSlots + static_cast<int>(slot));
    entry.forward = slot == Slot::kForward;
    const bool has_weight =
        program.exists(program.task_id(task.stage, Slot::kWeight, task.microbatch));
    entry.releases = slot != Slot::kForward || program.backward_of(task.stage) == Backward::kNone;
    entry.part = slot == Slot::kWeight                   ? Release::kStash
                 : slot == Slot::kBackward && has_weight ? Release::kAllButStash
                                                         : Release::kEverything;
    const auto local = static_cast<std::size_t>(entry.local);
    RRFP_CHECK(position_[local] == -1);
    position_[local] = static_cast<int>(tasks_.size());
    initial_[local].total = static_cast<std::uint16_t>(program.dependencies(id));
    tasks_.push_back(entry);
  }
  if (!program.ordered_accumulation()) return;
  for (HintTask& entry : tasks_) {
    if (!program.accumulates(entry.id) || entry.microbatch + 1 == microbatches_) continue;
    const int stage = program.stage_of(entry.id);
    const TaskId weight = program.task_id(stage, Slot::kWeight, entry.microbatch + 1);
    const TaskId backward = program.task_id(stage, Slot::kBackward, entry.microbatch + 1);
    entry.next_accumulation = local_of(program.exists(weight) ? weight : backward);
  }
}

void RankScheduler::build_groups() {
  const Program& program = *program_;
  int inputs = 0;
  for (const int stage : program.stages_of(config_.rank)) {
    for (const Slot slot : {Slot::kForward, Slot::kBackward, Slot::kWeight}) {
      Group group;
      const auto local = [&](int of_stage, Slot of_slot) {
        return local_of(program.task_id(of_stage, of_slot, 0));
      };
      if (slot == Slot::kForward) group.dependents.push_back(local(stage, Slot::kBackward));
      if (slot == Slot::kBackward) group.dependents.push_back(local(stage, Slot::kWeight));
      for (const EdgeId id : program.edges_from(stage, slot)) {
        const Edge& edge = program.edge(id);
        if (edge.local()) {
          group.dependents.push_back(local(edge.to, slot));
        } else {
          group.outputs.push_back({program.task_id(edge.to, slot, 0), stage, edge.to_rank, 0});
          group.edges.push_back(id);
        }
      }
      if (slot == Slot::kForward) group.producers = program.predecessors(stage);
      if (slot == Slot::kBackward) group.producers = program.successors(stage);
      group.first_input = inputs;
      inputs += static_cast<int>(group.producers.size()) * microbatches_;
      if (notices_.size() < group.outputs.size()) notices_.resize(group.outputs.size());
      groups_.push_back(std::move(group));
    }
  }
  if (config_.anticipation) {
    input_eta_ns_.resize(static_cast<std::size_t>(inputs));
    announced_ = PositionSet(size());
  }
  ready_ = PositionSet(size());
  if (!config_.adapt_expected) return;
  mean_ns_.assign(groups_.size(), 0);
  std::vector<std::int64_t> counts(groups_.size(), 0);
  for (const HintTask& task : tasks_) {
    mean_ns_[static_cast<std::size_t>(task.group)] +=
        config_.expected_ns[static_cast<std::size_t>(task.id)];
    ++counts[static_cast<std::size_t>(task.group)];
  }
  for (std::size_t i = 0; i < mean_ns_.size(); ++i)
    mean_ns_[i] /= std::max<std::int64_t>(counts[i], 1);
  profile_ns_ = mean_ns_;
}

void RankScheduler::build_gates() {
  if (!admission_.limited()) return;
  const auto words = static_cast<std::size_t>(size() / PositionSet::kWordBits + 1);
  for (std::size_t stage = 0; stage < groups_.size() / kSlots; ++stage) {
    const int local_stage = static_cast<int>(stage);
    GatedForwards gate;
    gate.ready = PositionSet(size());
    gate.activation_bytes = admission_.activation(local_stage, 0);
    for (int m = 1; m < microbatches_; ++m) {
      if (admission_.activation(local_stage, m) != gate.activation_bytes) gate.uniform = false;
    }
    if (!gate.uniform) gate.least_bytes.resize(words);
    gates_.push_back(std::move(gate));
  }
}

void RankScheduler::reset() {
  unmet_ = initial_;
  std::fill(input_eta_ns_.begin(), input_eta_ns_.end(), kUnannounced);
  admission_.reset();
  ready_.clear();
  announced_.clear();
  for (GatedForwards& gate : gates_) gate.ready.clear();
  notice_count_ = 0;
  held_ = 0;
  decided_count_ = 0;
  first_undecided_ = 0;
  expected_end_ns_ = 0;
}

int RankScheduler::local_of_many(TaskId task) const {
  const int stage = program_->stage_of(task);
  const int local_stage = local_stage_[static_cast<std::size_t>(stage)];
  RRFP_CHECK(local_stage >= 0);
  return task + (local_stage - stage) * kSlots * microbatches_;
}

std::int64_t& RankScheduler::input_eta_ns(const HintTask& task, int producer) {
  const Group& group = groups_[static_cast<std::size_t>(task.group)];
  const auto found = std::find(group.producers.begin(), group.producers.end(), producer);
  RRFP_CHECK(found != group.producers.end());
  const auto width = static_cast<int>(group.producers.size());
  return input_eta_ns_[static_cast<std::size_t>(group.first_input + task.microbatch * width +
                                                (found - group.producers.begin()))];
}

void RankScheduler::on_input(TaskId task, int producer) {
  const int local = local_of(task);
  if (config_.anticipation && producer != kRootInput) {
    std::int64_t& eta_ns = input_eta_ns(at_local(local), producer);
    RRFP_CHECK(eta_ns != kArrived);
    if (eta_ns != kUnannounced) --unmet_[static_cast<std::size_t>(local)].announced;
    eta_ns = kArrived;
  }
  satisfy(local);
}

void RankScheduler::on_notice(TaskId task, int producer, std::int64_t eta_ns) {
  if (!config_.anticipation) return;
  const int local = local_of(task);
  std::int64_t& known_ns = input_eta_ns(at_local(local), producer);
  if (known_ns == kArrived) return;
  RRFP_CHECK(known_ns == kUnannounced);
  known_ns = eta_ns;
  Unmet& unmet = unmet_[static_cast<std::size_t>(local)];
  if (++unmet.announced == unmet.total) {
    announced_.insert(position_[static_cast<std::size_t>(local)]);
  }
}

void RankScheduler::on_finished(TaskId task_id, [[maybe_unused]] std::int64_t now_ns) {
  const int local = local_of(task_id);
  const HintTask& task = at_local(local);
  RRFP_CHECK(unmet_[static_cast<std::size_t>(local)].total == kDecided && held_ > 0);
  --held_;
  if (task.releases) admission_.release(task.local_stage, task.microbatch, task.part);
  for (const int dependent : groups_[static_cast<std::size_t>(task.group)].dependents) {
    satisfy(dependent + task.microbatch);
  }
  if (task.next_accumulation >= 0) satisfy(task.next_accumulation);
}

void RankScheduler::on_expected(int stage, Kind kind, std::int64_t ns) {
  if (!config_.adapt_expected) return;
  const Slot slot = kind == Kind::kForward          ? Slot::kForward
                    : kind == Kind::kWeightGradient ? Slot::kWeight
                                                    : Slot::kBackward;
  const int local_stage = local_stage_[static_cast<std::size_t>(stage)];
  std::int64_t& mean_ns =
      mean_ns_[static_cast<std::size_t>(local_stage * kSlots + static_cast<int>(slot))];
  mean_ns += (ns - mean_ns) / 8;
}

void RankScheduler::satisfy(int local) {
  Unmet& unmet = unmet_[static_cast<std::size_t>(local)];
  RRFP_CHECK(unmet.total != 0 && unmet.total != kDecided);
  if (--unmet.total == 0) {
    make_ready(position_[static_cast<std::size_t>(local)]);
  } else if (unmet.total == unmet.announced) {
    announced_.insert(position_[static_cast<std::size_t>(local)]);
  }
}

void RankScheduler::make_ready(int position) {
  if (config_.anticipation) announced_.erase(position);
  const HintTask& task = tasks_[static_cast<std::size_t>(position)];
  if (!task.forward || gates_.empty()) {
    ready_.insert(position);
    return;
  }
  GatedForwards& gate = gates_[static_cast<std::size_t>(task.local_stage)];
  if (!gate.uniform) {
    const int word = position / PositionSet::kWordBits;
    std::int64_t& least = gate.least_bytes[static_cast<std::size_t>(word)];
    const std::int64_t bytes = activation_at(position);
    least = gate.ready.word(word) == 0 ? bytes : std::min(least, bytes);
  }
  gate.ready.insert(position);
}

void RankScheduler::unready(int position) {
  const HintTask& task = tasks_[static_cast<std::size_t>(position)];
  if (!task.forward || gates_.empty()) {
    ready_.erase(position);
    return;
  }
  GatedForwards& gate = gates_[static_cast<std::size_t>(task.local_stage)];
  gate.ready.erase(position);
  if (gate.uniform) return;
  const int word = position / PositionSet::kWordBits;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::uint64_t bits = gate.ready.word(word); bits != 0; bits &= bits - 1) {
    least = std::min(least, activation_at(word * PositionSet::kWordBits + std::countr_zero(bits)));
  }
  gate.least_bytes[static_cast<std::size_t>(word)] = least;
}

std::int64_t RankScheduler::activation_at(int position) const {
  const HintTask& task = tasks_[static_cast<std::size_t>(position)];
  return admission_.activation(task.local_stage, task.microbatch);
}

int RankScheduler::first_undecided() const {
  int position = first_undecided_;
  while (position < size() &&
         unmet_[static_cast<std::size_t>(tasks_[static_cast<std::size_t>(position)].local)].total ==
             kDecided) {
    ++position;
  }
  return position;
}

std::size_t RankScheduler::ready(std::span<TaskId> to) const {
  std::size_t count = 0;
  int from = 0;
  while (count < to.size()) {
    int position = ready_.next(from);
    for (const GatedForwards& gate : gates_) position = std::min(position, gate.ready.next(from));
    if (position == PositionSet::kNone) break;
    to[count++] = task_at(position);
    from = position + 1;
  }
  return count;
}

// Positions below the result are inside the window.
int RankScheduler::window_end() {
  if (config_.window == kNoWindow) return PositionSet::kNone;
  first_undecided_ = first_undecided();
  if (config_.window > size() - first_undecided_) return PositionSet::kNone;
  return first_undecided_ + config_.window;
}

int RankScheduler::first_fitting(const GatedForwards& gate, std::int64_t room) const {
  if (gate.uniform) {
    return gate.activation_bytes <= room ? gate.ready.first() : PositionSet::kNone;
  }
  int position = gate.ready.first();
  while (position != PositionSet::kNone) {
    const int word = position / PositionSet::kWordBits;
    if (gate.least_bytes[static_cast<std::size_t>(word)] > room) {
      position = gate.ready.next((word + 1) * PositionSet::kWordBits);
      continue;
    }
    if (activation_at(position) <= room) return position;
    position = gate.ready.next(position + 1);
  }
  return PositionSet::kNone;
}

// The lowest position among ready, admissible F that need admission.
int RankScheduler::best_gated() const {
  int best = PositionSet::kNone;
  for (std::size_t stage = 0; stage < gates_.size(); ++stage) {
    const GatedForwards& gate = gates_[stage];
    const int local_stage = static_cast<int>(stage);
    best = std::min(best, first_fitting(gate, admission_.room(local_stage)));
    const int microbatch = admission_.token_microbatch(local_stage);
    if (microbatch < 0) continue;
    const int position =
        position_[static_cast<std::size_t>(local_stage * kSlots * microbatches_ + microbatch)];
    if (position < best && gate.ready.contains(position)) best = position;
  }
  return best;
}

Decision RankScheduler::decide(std::int64_t now_ns) {
  RRFP_CHECK(held_ < config_.queue_depth);
  ++decisions_;
  const int limit = window_end();
  const int best = std::min(ready_.first(), best_gated());
  Decision decision;
  if (best == PositionSet::kNone || best >= limit) {
    decision.reason = why_idle(best, limit);
    return decision;
  }
  if (config_.anticipation) {
    if (const std::optional<std::int64_t> until_ns = wait_until(best, now_ns)) {
      decision.action = Decision::Action::kWait;
      decision.reason = WaitReason::kAnticipation;
      decision.until_ns = *until_ns;
      return decision;
    }
  }
  start(best, now_ns);
  decision.action = Decision::Action::kStart;
  decision.task = tasks_[static_cast<std::size_t>(best)].id;
  return decision;
}

WaitReason RankScheduler::why_idle(int best, int limit) const {
  if (best != PositionSet::kNone) return WaitReason::kOrder;
  for (const GatedForwards& gate : gates_) {
    const int first = gate.ready.first();
    if (first != PositionSet::kNone && first < limit) return WaitReason::kMemory;
  }
  return WaitReason::kNotReady;
}

std::int64_t RankScheduler::expected_ns(const HintTask& task) const {
  const std::int64_t profile = config_.expected_ns[static_cast<std::size_t>(task.id)];
  if (!config_.adapt_expected) return profile;
  const auto group = static_cast<std::size_t>(task.group);
  if (profile_ns_[group] == 0) return mean_ns_[group];
  return static_cast<std::int64_t>(Wide{profile} * mean_ns_[group] / profile_ns_[group]);
}

// REQUIRES: all unmet dependencies of `task` are announced inputs. Arrived
// and unannounced inputs are below every real time.
std::int64_t RankScheduler::announced_eta_ns(const HintTask& task) const {
  const Group& group = groups_[static_cast<std::size_t>(task.group)];
  const std::size_t width = group.producers.size();
  const std::size_t first = static_cast<std::size_t>(group.first_input) +
                            static_cast<std::size_t>(task.microbatch) * width;
  return *std::max_element(input_eta_ns_.begin() + static_cast<std::ptrdiff_t>(first),
                           input_eta_ns_.begin() + static_cast<std::ptrdiff_t>(first + width));
}

// When to decide again if a better task than the one at `position` is about
// to arrive.
std::optional<std::int64_t> RankScheduler::wait_until(int position, std::int64_t now_ns) const {
  int candidate = announced_.first();
  if (candidate > position) return std::nullopt;
  const std::int64_t length_ns = expected_ns(tasks_[static_cast<std::size_t>(position)]);
  const std::int64_t grace_ns = permille_of(config_.anticipation->grace_permille, length_ns);
  std::int64_t least_ns = std::numeric_limits<std::int64_t>::max();
  for (; candidate < position; candidate = announced_.next(candidate + 1)) {
    const HintTask& task = tasks_[static_cast<std::size_t>(candidate)];
    const std::int64_t eta_ns = announced_eta_ns(task);
    if (eta_ns >= least_ns || now_ns > eta_ns + grace_ns) continue;
    if (task.forward && !admission_.admits(task.local_stage, task.microbatch)) continue;
    least_ns = eta_ns;
  }
  const std::int64_t reach_ns = permille_of(config_.anticipation->reach_permille, length_ns);
  if (least_ns == std::numeric_limits<std::int64_t>::max() || least_ns - now_ns > reach_ns) {
    return std::nullopt;
  }
  return least_ns + grace_ns + 1;
}

void RankScheduler::start(int position, std::int64_t now_ns) {
  const HintTask& task = tasks_[static_cast<std::size_t>(position)];
  unready(position);
  if (task.forward) admission_.take(task.local_stage, task.microbatch);
  unmet_[static_cast<std::size_t>(task.local)].total = kDecided;
  if (config_.anticipation) write_notices(task, now_ns);
  ++held_;
  ++decided_count_;
}

void RankScheduler::write_notices(const HintTask& task, std::int64_t now_ns) {
  std::int64_t begin_ns = now_ns + config_.start_delay_ns;
  if (held_ > 0) begin_ns = std::max(begin_ns, expected_end_ns_);
  expected_end_ns_ = begin_ns + expected_ns(task);
  const Group& group = groups_[static_cast<std::size_t>(task.group)];
  notice_count_ = group.outputs.size();
  for (std::size_t i = 0; i < notice_count_; ++i) {
    Notice& notice = notices_[i];
    notice = group.outputs[i];
    notice.task += task.microbatch;
    notice.eta_ns = expected_end_ns_ + config_.expected_transfer_ns[static_cast<std::size_t>(
                                           group.edges[i] * microbatches_ + task.microbatch)];
  }
}

}  // namespace rrfp
