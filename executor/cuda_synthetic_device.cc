#include "executor/cuda_synthetic_device.h"

#include <algorithm>
#include <string>

#include "executor/cuda_error.h"
#include "executor/cuda_launchers.h"
#include "executor/token_gradient.h"
#include "scheduler_core/random.h"

namespace rrfp {

namespace {

// What kernels report: a wrong product, or one more than the edge of a message.
constexpr std::uint32_t kWrongProduct = 0xffffffff;

}  // namespace

CudaSyntheticDevice::CudaSyntheticDevice(std::shared_ptr<CudaDevicePartitions> partitions,
                                         CudaPartition& partition, const Place& place,
                                         const CudaSettings& settings, int free_sms)
    : CudaQueueDevice(std::move(partitions), partition, place, settings), free_sms_(free_sms) {}

Result<void> CudaSyntheticDevice::begin(const PreparedCase& world, int iteration) {
  world_ = &world;
  iteration_ = iteration;
  if (Result<void> ready = start_over(); !ready.ok()) return ready;
  const Program& program = world.program();
  const auto messages = program.edges().size() * static_cast<std::size_t>(program.microbatches());
  inbox_.assign(messages, std::nullopt);
  outbox_.assign(messages, std::nullopt);
  return reserve(program);
}

// Before the first iteration; with a block of those that are there.
Result<int> CudaSyntheticDevice::warm_up() {
  if (length_) return 0;
  if (!measurement_) {
    const std::vector<std::size_t> sizes = block_sizes(world_->program());
    const std::size_t largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
    measurement_.emplace(partition(), largest, free_sms_);
  }
  const Result<int> left = measurement_->measure_round();
  if (!left.ok() || *left > 0) return left;
  length_ = measurement_->length();
  measurement_.reset();
  return 0;
}

std::size_t CudaSyntheticDevice::message(EdgeId edge, int microbatch) const {
  return static_cast<std::size_t>(edge * world_->program().microbatches() + microbatch);
}

std::size_t CudaSyntheticDevice::bytes_of(EdgeId edge, int microbatch) const {
  const std::int64_t full = world_->message_bytes()[message(edge, microbatch)];
  return std::min(static_cast<std::size_t>(full), settings().payload_limit);
}

std::size_t CudaSyntheticDevice::output_bytes(TaskId task) const {
  const Program& program = world_->program();
  std::size_t bytes = 0;
  for (const EdgeId edge : program.edges_from(program.stage_of(task), program.slot_of(task))) {
    if (!program.edge(edge).local()) bytes += bytes_of(edge, program.microbatch_of(task));
  }
  return bytes;
}

// Different for every message, so that one delivered in place of another shows.
std::uint64_t CudaSyntheticDevice::word_of(EdgeId edge, int microbatch) const {
  return random_bits({static_cast<std::uint64_t>(place().replica),
                      static_cast<std::uint64_t>(iteration_),
                      static_cast<std::uint64_t>(place().lane), message(edge, microbatch)});
}

Result<void> CudaSyntheticDevice::take_input(TaskId task, int producer, Payload payload) {
  if (failure()) return *failure();
  const Program& program = world_->program();
  const int microbatch = program.microbatch_of(task);
  const Kind kind = program.slot_of(task) == Slot::kForward ? Kind::kForward : Kind::kBackward;
  const EdgeId edge = program.find_edge(kind, producer, program.stage_of(task));
  const std::size_t expected = bytes_of(edge, microbatch);
  if (payload.empty() && expected == 0) return {};
  const Result<CudaMessage> taken = expect_cuda_message(payload, expected, program, task, producer);
  if (!taken.ok()) return taken.error();
  inbox_[message(edge, microbatch)] = *taken;
  return {};
}

Result<void> CudaSyntheticDevice::enqueue(TaskId task) {
  const Result<std::size_t> checked_bytes = check_inputs(task);
  if (!checked_bytes.ok()) return checked_bytes.error();
  if (Result<void> worked = work(task, *checked_bytes); !worked.ok()) return worked;
  return fill_outputs(task);
}

Result<void> CudaSyntheticDevice::work(TaskId task, std::size_t checked_bytes) {
  const std::int64_t length_ns = world_->duration_ns()[static_cast<std::size_t>(task)];
  const int products = length_->products_for(length_ns, checked_bytes, output_bytes(task));
  return check_cuda(
      "launch of the matrix chain",
      launch_matrix_chain(length_->blocks(), products, {partition().fault().get(), kWrongProduct},
                          partition().compute()));
}

Result<std::size_t> CudaSyntheticDevice::check_inputs(TaskId task) {
  std::size_t bytes = 0;
  const Program& program = world_->program();
  const int microbatch = program.microbatch_of(task);
  for (const EdgeId edge : program.edges_to(program.stage_of(task), program.slot_of(task))) {
    const std::optional<CudaMessage>& input = inbox_[message(edge, microbatch)];
    if (!input) continue;
    const FaultReport report = {partition().fault().get(), static_cast<std::uint32_t>(edge) + 1};
    Result<void> launched =
        check_cuda("launch of the check of an input",
                   launch_check_pattern(input->block, input->bytes, word_of(edge, microbatch),
                                        report, partition().compute()));
    if (!launched.ok()) return launched.error();
    bytes += input->bytes;
  }
  return bytes;
}

Result<void> CudaSyntheticDevice::fill_outputs(TaskId task) {
  const Program& program = world_->program();
  const int microbatch = program.microbatch_of(task);
  for (const EdgeId edge : program.edges_from(program.stage_of(task), program.slot_of(task))) {
    const std::size_t bytes = bytes_of(edge, microbatch);
    if (program.edge(edge).local() || bytes == 0) continue;
    const Result<void*> block = partition().blocks().take(bytes);
    if (!block.ok()) return block.error();
    outbox_[message(edge, microbatch)] = CudaMessage{*block, bytes, &partition().blocks()};
    Result<void> launched = check_cuda(
        "launch of the filling of an output",
        launch_fill_pattern(*block, bytes, word_of(edge, microbatch), partition().compute()));
    if (!launched.ok()) return launched;
  }
  return {};
}

Result<void> CudaSyntheticDevice::finish(TaskId task) {
  const Program& program = world_->program();
  if (const std::uint32_t fault = partition().fault().load(); fault == kWrongProduct) {
    return Error{to_string(program.task(task)) + ": the device computes wrong matrix products"};
  } else if (fault != 0) {
    const int from = program.edge(static_cast<EdgeId>(fault - 1)).from;
    return Error{"the message from stage " + std::to_string(from) + " for " +
                 to_string(program.task(task)) + " holds other bytes than were sent"};
  }
  const int microbatch = program.microbatch_of(task);
  for (const EdgeId edge : program.edges_to(program.stage_of(task), program.slot_of(task))) {
    std::optional<CudaMessage>& input = inbox_[message(edge, microbatch)];
    if (input) input->give_back();
    input.reset();
  }
  return {};
}

Result<Payload> CudaSyntheticDevice::output(TaskId task, EdgeId edge) {
  if (failure()) return *failure();
  std::optional<CudaMessage>& sent = outbox_[message(edge, world_->program().microbatch_of(task))];
  if (!sent) return Payload();
  Payload payload = to_payload(*sent);
  sent.reset();
  return payload;
}

Result<Payload> CudaSyntheticDevice::gradient(int stage) {
  if (failure()) return *failure();
  return token_gradient(stage);
}

Result<Payload> CudaSyntheticDevice::reduce([[maybe_unused]] int stage,
                                            std::span<Payload> replicas) {
  return sum_token_gradients(replicas);
}

Result<void> CudaSyntheticDevice::take_gradient(int stage, Payload sum) {
  return check_token_gradient(stage, sum);
}

Result<void> CudaSyntheticDevice::finish_iteration() {
  if (failure()) return *failure();
  return check_cuda("an earlier call", cudaGetLastError());
}

}  // namespace rrfp
