#include "executor/emulated_device.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "executor/token_gradient.h"
#include "scheduler_core/random.h"

namespace rrfp {

Result<void> EmulatedDevice::begin(const PreparedCase& world, int iteration) {
  world_ = &world;
  iteration_ = iteration;
  queue_.clear();
  head_ = 0;
  running_ = group_started_ = false;
  return {};
}

void EmulatedDevice::launch(TaskId task, std::int64_t not_before_ns,
                            [[maybe_unused]] std::int64_t now_ns) {
  queue_.push_back({task, not_before_ns});
}

std::optional<DeviceEvent> EmulatedDevice::poll(std::int64_t now_ns) {
  if (head_ == queue_.size()) return std::nullopt;
  const Held& held = queue_[head_];
  if (!running_) {
    if (now_ns < held.not_before_ns) return std::nullopt;
    running_ = true;
    group_started_ = lanes_ == 1;
    deadline_ns_ = now_ns + world_->duration_ns()[static_cast<std::size_t>(held.task)];
    return DeviceEvent{DeviceEvent::Type::kStarted, held.task, now_ns};
  }
  if (!group_started_ || now_ns < deadline_ns_) return std::nullopt;
  running_ = false;
  ++head_;
  return DeviceEvent{DeviceEvent::Type::kFinished, held.task, now_ns};
}

std::int64_t EmulatedDevice::next_event_ns() const {
  if (head_ == queue_.size()) return kNever;
  if (!running_) return queue_[head_].not_before_ns;
  return group_started_ ? deadline_ns_ : kNever;
}

void EmulatedDevice::on_group_start(TaskId task, std::int64_t start_ns) {
  RRFP_CHECK(running_ && !group_started_ && queue_[head_].task == task);
  group_started_ = true;
  deadline_ns_ = start_ns + world_->duration_ns()[static_cast<std::size_t>(task)];
}

// Different for every message, so that one delivered in place of another shows.
Payload EmulatedDevice::pattern(EdgeId edge, int microbatch) const {
  const auto message =
      static_cast<std::size_t>(edge * world_->program().microbatches() + microbatch);
  const auto full = static_cast<std::size_t>(world_->message_bytes()[message]);
  Payload payload(std::min(full, payload_limit_));
  const std::uint64_t word = mix_bits(static_cast<std::uint64_t>(message) * 1'000'003 +
                                      static_cast<std::uint64_t>(iteration_) + 1);
  for (std::size_t at = 0; at < payload.size(); at += sizeof(word)) {
    std::memcpy(payload.data() + at, &word, std::min(sizeof(word), payload.size() - at));
  }
  return payload;
}

Result<Payload> EmulatedDevice::output(TaskId task, EdgeId edge) {
  return pattern(edge, world_->program().microbatch_of(task));
}

Result<void> EmulatedDevice::take_input(TaskId task, int producer, Payload payload) {
  const Program& program = world_->program();
  const Kind kind = program.slot_of(task) == Slot::kForward ? Kind::kForward : Kind::kBackward;
  const EdgeId edge = program.find_edge(kind, producer, program.stage_of(task));
  const Payload expected = pattern(edge, program.microbatch_of(task));
  if (payload.size() == expected.size() &&
      (payload.empty() || std::memcmp(payload.data(), expected.data(), payload.size()) == 0)) {
    return {};
  }
  return Error{"the message from stage " + std::to_string(producer) + " for " +
               to_string(program.task(task)) + " holds other bytes than were sent (" +
               std::to_string(payload.size()) + " of " + std::to_string(expected.size()) + ")"};
}

Result<Payload> EmulatedDevice::gradient(int stage) { return token_gradient(stage); }

Result<Payload> EmulatedDevice::reduce([[maybe_unused]] int stage, std::span<Payload> replicas) {
  return sum_token_gradients(replicas);
}

Result<void> EmulatedDevice::take_gradient(int stage, Payload sum) {
  return check_token_gradient(stage, sum);
}

}  // namespace rrfp
