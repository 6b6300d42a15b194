// What the devices that enqueue tasks on a stream have in common: when work is
// enqueued, and how its start and end are seen, by marks in the stream. What
// the work of a task is, whoever derives from this says.
//
// Invariants
//  1. Work is enqueued only once nothing it needs is still to come: a stream
//     never waits for another one, nor for another rank; for the other lanes of
//     its group only where waits_for_lanes() says so, and they have started.
//  2. After an error nothing more is enqueued; tasks are reported as ended, and
//     the next call that can says what it was.
//  3. Where transfers may wait on the device for other processes, memory is
//     allocated in begin() alone: the driver would wait for them.
//  4. What a look enqueues it does not report: enqueuing may take time.
//
// With lanes, a task's work is enqueued when all lanes have started it.
//
// Not thread safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "executor/cuda_module.h"
#include "executor/cuda_partition.h"
#include "executor/device.h"

namespace rrfp {

class CudaQueueDevice : public Device {
 public:
  /// After a run that did not end by itself, waits for what is in the stream.
  ~CudaQueueDevice() override;

  void launch(TaskId task, std::int64_t not_before_ns, std::int64_t now_ns) override;
  std::optional<DeviceEvent> poll(std::int64_t now_ns) override;
  std::int64_t next_event_ns() const override;
  bool busy() const override { return head_ < queue_.size(); }
  void on_group_start(TaskId task, std::int64_t start_ns) override;
  void stop() override {
    if (on_stop_) on_stop_();
  }

  /// What is to be done where the run ends early, so that nobody waits for
  /// this device and it for nobody.
  void set_on_stop(std::function<void()> on_stop) { on_stop_ = std::move(on_stop); }

 protected:
  /// `partitions` holds `partition`, and is kept.
  CudaQueueDevice(std::shared_ptr<CudaDevicePartitions> partitions, CudaPartition& partition,
                  const Place& place, const CudaSettings& settings);

  CudaPartition& partition() const { return partition_; }
  const Place& place() const { return place_; }
  const CudaSettings& settings() const { return settings_; }
  const std::optional<Error>& failure() const { return failure_; }
  /// Waits for the stream, which is to be done before anything that work uses
  /// goes away.
  void drain() const;
  /// For begin(): nothing is held any more, and what the last iteration left on
  /// the device has ended, so that memory may be allocated.
  Result<void> start_over();
  /// Of all tensors of an iteration that this rank makes or gets.
  std::vector<std::size_t> block_sizes(const Program& program) const;
  /// What may be reserved for one purpose before an iteration: where nobody waits
  /// for another process, this worker's share of half of the free memory, and what
  /// takes more is allocated as it is needed. None: everything.
  Result<std::optional<std::size_t>> reserve_bytes() const;
  /// For begin(): blocks for all of them within reserve_bytes(), so that none is
  /// allocated later. See CudaBlocks.
  Result<void> reserve(const Program& program);

 private:
  struct Held {
    TaskId task = kNoTask;
    std::int64_t not_before_ns = 0;
    std::int64_t not_done_before_ns = 0;
    std::int64_t started_ns = 0;
    std::int64_t start_mark = 0;  // 0: not enqueued
    std::int64_t end_mark = 0;    // 0: nor is its work
    bool started = false;         // and said so
    bool group_started = false;
  };

  /// Of the block that is taken for what goes along an edge of this rank; 0:
  /// none is.
  virtual std::size_t block_bytes(EdgeId edge, int microbatch) const = 0;
  /// Enqueues the work of `task` in partition().compute().
  virtual Result<void> enqueue(TaskId task) = 0;
  /// The stream is past that.
  virtual Result<void> finish(TaskId task) = 0;
  /// `task` is not to end sooner after its start.
  virtual std::int64_t least_length_ns([[maybe_unused]] TaskId task) const { return 0; }

  /// For errors.
  virtual std::string name_of(TaskId task) const = 0;
  /// The work of a task waits in the stream for other lanes.
  virtual bool waits_for_lanes() const { return false; }

  Result<bool> enqueue_due(std::int64_t now_ns);
  Result<void> enqueue_work(Held& held);
  bool lanes_are_missing(const Held& held, std::int64_t now_ns) const;
  void fail(const Error& error) {
    if (!failure_) failure_ = error;
  }

  const std::shared_ptr<CudaDevicePartitions> partitions_;
  CudaPartition& partition_;
  const Place place_;
  const CudaSettings settings_;
  std::vector<Held> queue_;  // from head_ on it is held
  std::size_t head_ = 0;
  std::size_t next_ = 0;  // the first whose work is not enqueued
  std::int64_t looked_ns_ = 0;
  std::optional<Error> failure_;
  std::function<void()> on_stop_;
};

}  // namespace rrfp
