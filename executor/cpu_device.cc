#include "executor/cpu_device.h"

#include <algorithm>
#include <cmath>

#include "executor/training_report.h"

namespace rrfp {

CpuDevice::CpuDevice(std::shared_ptr<const CpuTraining> training, const Place& place,
                     std::shared_ptr<LaneExchange> exchange)
    : training_(std::move(training)),
      place_(place),
      together_(std::move(exchange)),
      lanes_(training_->grid.lanes == 1 ? static_cast<LaneSum&>(alone_) : together_) {}

Result<void> CpuDevice::make_stages() {
  const Program& program = world_->program();
  Result<std::vector<StageCut>> cuts = cut_model(training_->spec.model, program);
  if (!cuts.ok()) return cuts.error();
  cuts_ = std::move(*cuts);
  stages_.resize(cuts_.size());
  for (const int stage : program.stages_of(place_.rank)) {
    const auto at = static_cast<std::size_t>(stage);
    stages_[at].emplace(training_->spec.model, cuts_[at], HeldLanes{place_.lane, 1});
  }
  return {};
}

Result<void> CpuDevice::begin(const PreparedCase& world, int iteration) {
  world_ = &world;
  iteration_ = iteration;
  const Program& program = world.program();
  microbatches_ = program.microbatches();
  if (stages_.empty()) {
    if (Result<void> made = make_stages(); !made.ok()) return made;
  }
  if (static_cast<int>(stages_.size()) != program.stages()) {
    return Error{"the program of iteration " + std::to_string(iteration) +
                 " has other stages than the one before"};
  }
  scale_ = 1 / static_cast<Real>(training_->data.targets_of_step(
                   iteration, training_->grid.replicas, microbatches_));
  samples_ = training_->data.samples(iteration, place_.replica, microbatches_, world.arrangement());
  const auto messages = program.edges().size() * static_cast<std::size_t>(microbatches_);
  stashes_.assign(stages_.size() * static_cast<std::size_t>(microbatches_), {});
  inbox_.assign(messages, {});
  outbox_.clear();
  outbox_.resize(messages);
  losses_.assign(static_cast<std::size_t>(microbatches_), 0);
  peak_stash_bytes_ = 0;
  queue_.clear();
  head_ = 0;
  state_ = State::kWaiting;
  return {};
}

Result<void> CpuDevice::take_input(TaskId task, int producer, Payload payload) {
  if (failure_) return *failure_;
  const Program& program = world_->program();
  const Kind kind = program.slot_of(task) == Slot::kForward ? Kind::kForward : Kind::kBackward;
  const EdgeId edge = program.find_edge(kind, producer, program.stage_of(task));
  Result<Matrix> tensor = to_matrix(payload, training_->spec.model.width);
  if (!tensor.ok()) {
    return Error{"from stage " + std::to_string(producer) + " for " +
                 to_string(program.task(task)) + ": " + tensor.error().message};
  }
  inbox_[message(edge, program.microbatch_of(task))] = std::move(*tensor);
  return {};
}

void CpuDevice::launch(TaskId task, std::int64_t not_before_ns,
                       [[maybe_unused]] std::int64_t now_ns) {
  queue_.push_back({task, not_before_ns});
}

// The work is done in a call of its own, which reports nothing: the caller
// looks at the clock before it calls again.
std::optional<DeviceEvent> CpuDevice::poll(std::int64_t now_ns) {
  if (head_ == queue_.size()) return std::nullopt;
  const Held held = queue_[head_];
  switch (state_) {
    case State::kWaiting:
      if (now_ns < held.not_before_ns) return std::nullopt;
      state_ = State::kStarted;
      group_started_ = training_->grid.lanes == 1;
      start_ns_ = now_ns;
      not_done_before_ns_ =
          training_->paced ? now_ns + world_->duration_ns()[static_cast<std::size_t>(held.task)]
                           : 0;
      return DeviceEvent{DeviceEvent::Type::kStarted, held.task, now_ns};
    case State::kStarted:
      // Not in the same look: what goes with a start is sent first.
      if (!group_started_ || now_ns == start_ns_) return std::nullopt;
      compute(held.task);
      state_ = State::kComputed;
      return std::nullopt;
    case State::kComputed:
      if (now_ns < not_done_before_ns_) return std::nullopt;
      state_ = State::kWaiting;
      ++head_;
      return DeviceEvent{DeviceEvent::Type::kFinished, held.task, now_ns};
  }
  return std::nullopt;
}

std::int64_t CpuDevice::next_event_ns() const {
  if (head_ == queue_.size()) return kNever;
  if (state_ == State::kWaiting) return queue_[head_].not_before_ns;
  if (state_ == State::kStarted) return group_started_ ? 0 : kNever;
  return not_done_before_ns_;
}

void CpuDevice::on_group_start(TaskId task, std::int64_t start_ns) {
  RRFP_CHECK(state_ == State::kStarted && !group_started_ && queue_[head_].task == task);
  group_started_ = true;
  if (training_->paced) {
    not_done_before_ns_ = start_ns + world_->duration_ns()[static_cast<std::size_t>(task)];
  }
}

void CpuDevice::compute(TaskId task) {
  if (failure_) return;
  Result<void> ran = run(task);
  if (!ran.ok()) {
    failure_ = ran.error();
  } else if (together_.failure()) {
    failure_ = Error{to_string(world_->program().task(task)) + ": " + together_.failure()->message};
  }
}

Result<void> CpuDevice::run(TaskId task) {
  const Program& program = world_->program();
  const int microbatch = program.microbatch_of(task);
  Stage& of = stage(program.stage_of(task));
  switch (program.slot_of(task)) {
    case Slot::kForward:
      return run_forward(of, microbatch);
    case Slot::kBackward: {
      Result<void> ran = run_backward(of, microbatch);
      if (!ran.ok()) return ran;
      break;
    }
    case Slot::kWeight:
      break;
  }
  if (program.accumulates(task)) of.weight_gradient(stash(of.cut().stage, microbatch));
  return {};
}

Result<void> CpuDevice::run_forward(Stage& of, int microbatch) {
  const Program& program = world_->program();
  const int number = of.cut().stage;
  const Sample& sample = samples_[static_cast<std::size_t>(microbatch)];
  Stage::Stash& kept = stash(number, microbatch);
  Result<Matrix> output =
      of.forward(sample, take_inputs(number, Kind::kForward, microbatch), lanes_, kept);
  if (!output.ok()) return output.error();
  count_stashes();
  if (of.cut().last) {
    losses_[static_cast<std::size_t>(microbatch)] = kept.loss;
    if (!std::isfinite(kept.loss)) {
      return not_a_number(iteration_, training_->grid.replicas, place_.replica, microbatch,
                          kept.loss);
    }
  }
  for (const EdgeId edge : program.edges_from(number, Slot::kForward)) {
    hand_on(edge, microbatch, *output);
  }
  if (program.backward_of(number) == Backward::kNone) kept = {};
  return {};
}

Result<void> CpuDevice::run_backward(Stage& of, int microbatch) {
  const Program& program = world_->program();
  const int number = of.cut().stage;
  const Sample& sample = samples_[static_cast<std::size_t>(microbatch)];
  Stage::Stash& kept = stash(number, microbatch);
  const Result<Matrix> gradient =
      of.input_gradient(take_inputs(number, Kind::kBackward, microbatch), scale_, lanes_, kept);
  if (!gradient.ok()) return gradient.error();
  count_stashes();
  const std::span<const int> predecessors = program.predecessors(number);
  for (const EdgeId edge : program.edges_from(number, Slot::kBackward)) {
    const auto index = std::find(predecessors.begin(), predecessors.end(), program.edge(edge).to) -
                       predecessors.begin();
    hand_on(edge, microbatch,
            gradient_for(of.cut(), sample.lengths, *gradient, static_cast<std::size_t>(index)));
  }
  if (program.backward_of(number) == Backward::kInput) kept = {};
  return {};
}

std::vector<Matrix> CpuDevice::take_inputs(int stage, Kind kind, int microbatch) {
  const Program& program = world_->program();
  std::vector<Matrix> inputs;
  for (const int from :
       kind == Kind::kForward ? program.predecessors(stage) : program.successors(stage)) {
    Matrix& tensor = inbox_[message(program.find_edge(kind, from, stage), microbatch)];
    inputs.push_back(std::move(tensor));
    release(tensor);
  }
  return inputs;
}

void CpuDevice::hand_on(EdgeId edge, int microbatch, Matrix tensor) {
  if (world_->program().edge(edge).local()) {
    inbox_[message(edge, microbatch)] = std::move(tensor);
  } else {
    outbox_[message(edge, microbatch)] = to_payload(tensor);
  }
}

void CpuDevice::count_stashes() {
  std::int64_t bytes = 0;
  for (const Stage::Stash& kept : stashes_) bytes += kept.bytes();
  peak_stash_bytes_ = std::max(peak_stash_bytes_, bytes);
}

Result<Payload> CpuDevice::output(TaskId task, EdgeId edge) {
  if (failure_) return *failure_;
  return std::move(outbox_[message(edge, world_->program().microbatch_of(task))]);
}

Result<Payload> CpuDevice::gradient(int number) {
  if (failure_) return *failure_;
  return gather_gradients(stage(number).parameters());
}

Result<Payload> CpuDevice::reduce(int stage, std::span<Payload> replicas) {
  Result<Payload> sum = sum_gradients(replicas);
  if (sum.ok()) return sum;
  return Error{"stage " + std::to_string(stage) + ": " + sum.error().message};
}

Result<void> CpuDevice::take_gradient(int number, Payload sum) {
  return scatter_gradients(sum, stage(number).parameters());
}

Result<void> CpuDevice::finish_iteration() {
  if (failure_) return *failure_;
  const Program& program = world_->program();
  for (std::optional<Stage>& of : stages_) {
    if (!of || program.backward_of(of->cut().stage) != Backward::kFull) continue;
    take_step(training_->spec.optimizer, of->parameters());
  }
  return {};
}

std::vector<std::byte> CpuDevice::report() {
  std::vector<NamedMatrix> entries;
  entries.emplace_back(kStashName, Matrix::Constant(1, 1, static_cast<Real>(peak_stash_bytes_)));
  if (stages_.back() && place_.lane == 0) {
    entries.emplace_back(kLossName, Eigen::Map<const Matrix>(losses_.data(), 1, microbatches_));
  }
  if (iteration_ + 1 == training_->steps) {
    for (std::optional<Stage>& of : stages_) {
      if (!of) continue;
      for (const Parameter* parameter : of->parameters()) {
        entries.emplace_back(parameter->name, parameter->value);
      }
    }
  }
  return to_report(entries);
}

}  // namespace rrfp
