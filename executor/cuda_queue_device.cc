#include "executor/cuda_queue_device.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "executor/cuda_error.h"
#include "executor/cuda_launchers.h"
#include "scheduler_core/check.h"

namespace rrfp {

CudaQueueDevice::CudaQueueDevice(std::shared_ptr<CudaDevicePartitions> partitions,
                                 CudaPartition& partition, const Place& place,
                                 const CudaSettings& settings)
    : partitions_(std::move(partitions)),
      partition_(partition),
      place_(place),
      settings_(settings) {}

CudaQueueDevice::~CudaQueueDevice() {
  if (busy()) drain();
}

void CudaQueueDevice::drain() const { cudaStreamSynchronize(partition_.compute()); }

// All that was sent in the last iteration has been taken, so no transfer waits for long.
Result<void> CudaQueueDevice::start_over() {
  queue_.clear();
  head_ = next_ = 0;
  // The first call of the worker's own thread.
  Result<void> chosen = check_cuda("cudaSetDevice", cudaSetDevice(partition_.device()));
  if (!chosen.ok() || !settings_.connected()) return chosen;
  return check_cuda("cudaDeviceSynchronize", cudaDeviceSynchronize());
}

std::vector<std::size_t> CudaQueueDevice::block_sizes(const Program& program) const {
  std::vector<std::size_t> sizes;
  for (std::size_t id = 0; id < program.edges().size(); ++id) {
    const Edge& edge = program.edges()[id];
    if (!edge.carries || (edge.from_rank != place_.rank && edge.to_rank != place_.rank)) continue;
    for (int microbatch = 0; microbatch < program.microbatches(); ++microbatch) {
      const std::size_t bytes = block_bytes(static_cast<EdgeId>(id), microbatch);
      if (bytes > 0) sizes.push_back(bytes);
    }
  }
  return sizes;
}

// Few of an iteration's tensors and activations are there at a time, as a rule.
Result<std::optional<std::size_t>> CudaQueueDevice::reserve_bytes() const {
  if (settings_.connected()) return std::optional<std::size_t>();
  std::size_t left = 0;
  std::size_t all = 0;
  Result<void> asked = check_cuda("cudaMemGetInfo", cudaMemGetInfo(&left, &all));
  if (!asked.ok()) return asked.error();
  return std::optional(left / 2 / static_cast<std::size_t>(settings_.workers));
}

Result<void> CudaQueueDevice::reserve(const Program& program) {
  std::vector<std::size_t> sizes = block_sizes(program);
  const Result<std::optional<std::size_t>> most = reserve_bytes();
  if (!most.ok()) return most.error();
  const std::size_t needed = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  if (*most && needed > std::max(**most, partition_.blocks().bytes())) {
    partition_.blocks().allocate_as_needed();
    return {};
  }
  return partition_.blocks().reserve(std::move(sizes));
}

void CudaQueueDevice::launch(TaskId task, std::int64_t not_before_ns, std::int64_t now_ns) {
  Held held;
  held.task = task;
  held.not_before_ns = not_before_ns;
  queue_.push_back(held);
  // The sooner it is in the stream, the less the stream stands idle.
  if (failure_) return;
  if (const Result<bool> enqueued = enqueue_due(now_ns); !enqueued.ok()) fail(enqueued.error());
}

bool CudaQueueDevice::lanes_are_missing(const Held& held, std::int64_t now_ns) const {
  return waits_for_lanes() && now_ns > held.started_ns + settings_.patience_ns;
}

// True where the work of a task was enqueued.
Result<bool> CudaQueueDevice::enqueue_due(std::int64_t now_ns) {
  bool any = false;
  for (; next_ < queue_.size(); ++next_) {
    Held& held = queue_[next_];
    if (held.start_mark == 0) {
      if (now_ns < held.not_before_ns) break;
      const Result<std::int64_t> mark = partition_.compute_marks().leave();
      if (!mark.ok()) return mark.error();
      held.start_mark = *mark;
    }
    if (settings_.grid.lanes > 1 && !held.group_started) break;
    if (Result<void> enqueued = enqueue_work(held); !enqueued.ok()) return enqueued.error();
    any = true;
  }
  return any;
}

Result<void> CudaQueueDevice::enqueue_work(Held& held) {
  if (settings_.grid.lanes > 1) {
    const int group = place_.replica * settings_.grid.ranks + place_.rank;
    note_group_work(group, place_.lane, static_cast<std::uint64_t>(held.task));
  }
  if (Result<void> enqueued = enqueue(held.task); !enqueued.ok()) return enqueued;
  const Result<std::int64_t> mark = partition_.compute_marks().leave();
  if (!mark.ok()) return mark.error();
  held.end_mark = *mark;
  return {};
}

std::optional<DeviceEvent> CudaQueueDevice::poll(std::int64_t now_ns) {
  looked_ns_ = now_ns;
  if (head_ == queue_.size()) return std::nullopt;
  std::int64_t reached = 0;
  if (!failure_) {
    const Result<bool> enqueued = enqueue_due(now_ns);
    if (!enqueued.ok()) fail(enqueued.error());
    if (enqueued.ok() && *enqueued) return std::nullopt;
    const Result<std::int64_t> mark = partition_.compute_marks().reached();
    if (!mark.ok()) fail(mark.error());
    if (mark.ok()) reached = *mark;
  }
  Held& held = queue_[head_];
  if (!held.started) {
    if (!failure_ && (held.start_mark == 0 || reached < held.start_mark)) return std::nullopt;
    held.started = true;
    held.started_ns = now_ns;
    held.not_done_before_ns = now_ns + least_length_ns(held.task);
    return DeviceEvent{DeviceEvent::Type::kStarted, held.task, now_ns};
  }
  if (!failure_) {
    if (held.end_mark == 0) return std::nullopt;
    if (reached < held.end_mark && lanes_are_missing(held, now_ns)) {
      // Its stream is stuck; it is reported as ended, like all after an error.
      fail(Error{name_of(held.task) + " has been running for " +
                 std::to_string(settings_.patience_ns / 1'000'000) +
                 " ms: another lane of its group has not come to one of its sums; a larger "
                 "--patience-ms waits longer"});
    } else if (reached < held.end_mark || now_ns < held.not_done_before_ns) {
      return std::nullopt;
    }
  }
  if (!failure_) {
    if (Result<void> finished = finish(held.task); !finished.ok()) fail(finished.error());
  }
  const TaskId task = held.task;
  ++head_;
  next_ = std::max(next_, head_);
  return DeviceEvent{DeviceEvent::Type::kFinished, task, now_ns};
}

// A stream does not wake anybody, so it is looked at from time to time.
std::int64_t CudaQueueDevice::next_event_ns() const {
  if (head_ == queue_.size()) return kNever;
  const Held& held = queue_[head_];
  if (failure_) return 0;
  if (held.start_mark == 0) return held.not_before_ns;
  if (held.started && held.end_mark == 0 && !held.group_started && settings_.grid.lanes > 1) {
    return kNever;  // until all lanes have started it
  }
  return looked_ns_ + settings_.look_every_ns;
}

void CudaQueueDevice::on_group_start(TaskId task, std::int64_t start_ns) {
  if (failure_) return;
  RRFP_CHECK(next_ < queue_.size() && queue_[next_].task == task);
  Held& held = queue_[next_];
  held.group_started = true;
  held.not_done_before_ns = start_ns + least_length_ns(task);
}

}  // namespace rrfp
