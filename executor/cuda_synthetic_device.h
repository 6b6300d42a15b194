// A device that works as long as a scenario says, and computes nothing anybody
// needs: a task is a chain of matrix products of the wanted length, its outputs
// are tensors of the wanted size, and its inputs are compared with what was
// sent. So a policy is tried on the machine it is meant for, with the profile
// of a model, and without the model.
//
// Invariants: those of CudaQueueDevice, and
//  1. A block is given back once the task (or the copy) that used it last has
//     been seen to end.
//
// Not thread safe.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "executor/cuda_message.h"
#include "executor/cuda_queue_device.h"
#include "executor/cuda_work_length.h"

namespace rrfp {

class CudaSyntheticDevice final : public CudaQueueDevice {
 public:
  /// `partitions` holds `partition`, and is kept. `free_sms`: that tasks leave to
  /// transfers.
  CudaSyntheticDevice(std::shared_ptr<CudaDevicePartitions> partitions, CudaPartition& partition,
                      const Place& place, const CudaSettings& settings, int free_sms = 0);

  Result<void> begin(const PreparedCase& world, int iteration) override;
  Result<int> warm_up() override;
  Result<void> take_input(TaskId task, int producer, Payload payload) override;
  Result<Payload> output(TaskId task, EdgeId edge) override;
  Result<Payload> gradient(int stage) override;
  Result<Payload> reduce(int stage, std::span<Payload> replicas) override;
  Result<void> take_gradient(int stage, Payload sum) override;
  Result<void> finish_iteration() override;

 private:
  std::string name_of(TaskId task) const override {
    return to_string(world_->program().task(task));
  }
  std::size_t block_bytes(EdgeId edge, int microbatch) const override {
    return world_->program().edge(edge).local() ? 0 : bytes_of(edge, microbatch);
  }
  Result<void> enqueue(TaskId task) override;
  Result<void> finish(TaskId task) override;
  Result<std::size_t> check_inputs(TaskId task);  // how many bytes
  Result<void> work(TaskId task, std::size_t checked_bytes);
  Result<void> fill_outputs(TaskId task);
  std::size_t message(EdgeId edge, int microbatch) const;
  std::size_t bytes_of(EdgeId edge, int microbatch) const;
  std::size_t output_bytes(TaskId task) const;
  std::uint64_t word_of(EdgeId edge, int microbatch) const;

  const int free_sms_;
  std::optional<CudaWorkMeasurement> measurement_;  // before length_
  std::optional<CudaWorkLength> length_;

  // Of this iteration.
  const PreparedCase* world_ = nullptr;
  int iteration_ = 0;
  std::vector<std::optional<CudaMessage>> inbox_;   // by message
  std::vector<std::optional<CudaMessage>> outbox_;  // by message
};

}  // namespace rrfp
