// A device that works as long as a scenario says, and computes nothing anybody
// needs: a task is a chain of matrix products of the wanted length, its outputs
// are tensors of the wanted size, and its inputs are compared with what was
// sent. So a policy is tried on the machine it is meant for, with the profile
// of a model, and without the model.
//
// Invariants
//  1. Work is enqueued only once nothing it needs is still to come: a stream
//     never waits for another one, nor for another rank.
//  2. A block is given back once the task (or the copy) that used it last has
//     been seen to end.
//  3. After an error nothing more is enqueued; tasks are reported as ended, and
//     the next call that can says what it was.
//
// With lanes, a task's work is enqueued when all lanes have started it.
//
// Not thread safe.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "executor/cuda_message.h"
#include "executor/cuda_module.h"
#include "executor/cuda_partition.h"
#include "executor/cuda_work_length.h"
#include "executor/device.h"

namespace rrfp {

class CudaSyntheticDevice final : public Device {
 public:
  /// `partitions` holds `partition`, and is kept.
  CudaSyntheticDevice(std::shared_ptr<CudaDevicePartitions> partitions, CudaPartition& partition,
                      const Place& place, const CudaSettings& settings);
  ~CudaSyntheticDevice() override;

  Result<void> begin(const PreparedCase& world, int iteration) override;
  Result<void> take_input(TaskId task, int producer, Payload payload) override;
  void launch(TaskId task, std::int64_t not_before_ns, std::int64_t now_ns) override;
  std::optional<DeviceEvent> poll(std::int64_t now_ns) override;
  std::int64_t next_event_ns() const override;
  bool busy() const override { return head_ < queue_.size(); }
  void on_group_start(TaskId task, std::int64_t start_ns) override;
  Result<Payload> output(TaskId task, EdgeId edge) override;
  Result<Payload> gradient(int stage) override;
  Result<Payload> reduce(int stage, std::span<Payload> replicas) override;
  Result<void> take_gradient(int stage, Payload sum) override;
  Result<void> finish_iteration() override;

 private:
  struct Held {
    TaskId task = kNoTask;
    std::int64_t not_before_ns = 0;
    std::int64_t start_mark = 0;  // 0: not enqueued
    std::int64_t end_mark = 0;    // 0: nor is its work
    bool started = false;         // and said so
    bool group_started = false;
  };

  Result<void> enqueue_due(std::int64_t now_ns);
  Result<void> enqueue_work(Held& held);
  Result<std::size_t> check_inputs(TaskId task);  // how many bytes
  Result<void> work(TaskId task, std::size_t checked_bytes);
  Result<void> fill_outputs(TaskId task);
  Result<void> finish(TaskId task);
  std::size_t message(EdgeId edge, int microbatch) const;
  std::size_t bytes_of(EdgeId edge, int microbatch) const;
  std::size_t output_bytes(TaskId task) const;
  std::size_t largest_message() const;
  std::uint64_t word_of(EdgeId edge, int microbatch) const;

  const std::shared_ptr<CudaDevicePartitions> partitions_;
  CudaPartition& partition_;
  const Place place_;
  const CudaSettings settings_;
  std::optional<CudaWorkLength> length_;

  // Of this iteration.
  const PreparedCase* world_ = nullptr;
  int iteration_ = 0;
  std::vector<std::optional<CudaMessage>> inbox_;   // by message
  std::vector<std::optional<CudaMessage>> outbox_;  // by message
  std::vector<Held> queue_;                         // from head_ on it is held
  std::size_t head_ = 0;
  std::size_t next_ = 0;  // the first whose work is not enqueued
  std::int64_t looked_ns_ = 0;
  std::optional<Error> failure_;
};

}  // namespace rrfp
