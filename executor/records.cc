#include "executor/records.h"

#include <algorithm>
#include <cstring>

namespace rrfp {

namespace {

// The fields that are not arrays, and how long the arrays are.
struct Head {
  std::int32_t endpoint = 0;
  std::int32_t iteration = 0;
  std::int64_t end_ns = 0;
  std::int64_t worst_stall_ns = 0;
  std::int64_t clock_offset_ns = 0;
  std::int64_t clock_error_ns = 0;
  std::int64_t peak_bytes = 0;
  std::uint64_t tasks = 0;
  std::uint64_t arrivals = 0;
  std::uint64_t syncs = 0;
  std::uint64_t signals = 0;
  std::uint64_t calls = 0;
  std::uint64_t report = 0;
};

template <typename T>
void append(Payload& payload, std::size_t& at, const T* items, std::size_t count) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (count == 0) return;
  std::memcpy(payload.data() + at, items, count * sizeof(T));
  at += count * sizeof(T);
}

template <typename T>
bool take(const Payload& payload, std::size_t& at, std::vector<T>& items, std::uint64_t count) {
  if (count > (payload.size() - at) / sizeof(T)) return false;
  items.resize(count);
  if (count > 0) std::memcpy(items.data(), payload.data() + at, count * sizeof(T));
  at += count * sizeof(T);
  return true;
}

}  // namespace

Payload to_payload(const WorkerRecord& record) {
  const Head head{record.endpoint,       record.iteration,       record.end_ns,
                  record.worst_stall_ns, record.clock_offset_ns, record.clock_error_ns,
                  record.peak_bytes,     record.tasks.size(),    record.arrivals.size(),
                  record.syncs.size(),   record.signals.size(),  record.calls.size(),
                  record.report.size()};
  Payload payload(sizeof(Head) + record.tasks.size() * sizeof(TaskRecord) +
                  record.arrivals.size() * sizeof(ArrivalRecord) +
                  record.syncs.size() * sizeof(SyncRecord) +
                  record.signals.size() * sizeof(SignalRecord) +
                  record.calls.size() * sizeof(CoreCall) + record.report.size());
  std::size_t at = 0;
  append(payload, at, &head, 1);
  append(payload, at, record.tasks.data(), record.tasks.size());
  append(payload, at, record.arrivals.data(), record.arrivals.size());
  append(payload, at, record.syncs.data(), record.syncs.size());
  append(payload, at, record.signals.data(), record.signals.size());
  append(payload, at, record.calls.data(), record.calls.size());
  append(payload, at, record.report.data(), record.report.size());
  return payload;
}

Result<WorkerRecord> to_record(const Payload& payload) {
  Head head;
  if (payload.size() < sizeof(Head)) return Error{"a worker's record is cut short"};
  std::memcpy(&head, payload.data(), sizeof(Head));
  WorkerRecord record;
  record.endpoint = head.endpoint;
  record.iteration = head.iteration;
  record.end_ns = head.end_ns;
  record.worst_stall_ns = head.worst_stall_ns;
  record.clock_offset_ns = head.clock_offset_ns;
  record.clock_error_ns = head.clock_error_ns;
  record.peak_bytes = head.peak_bytes;
  std::size_t at = sizeof(Head);
  if (!take(payload, at, record.tasks, head.tasks) ||
      !take(payload, at, record.arrivals, head.arrivals) ||
      !take(payload, at, record.syncs, head.syncs) ||
      !take(payload, at, record.signals, head.signals) ||
      !take(payload, at, record.calls, head.calls) ||
      !take(payload, at, record.report, head.report)) {
    return Error{"the record of endpoint " + std::to_string(head.endpoint) + " is cut short"};
  }
  return record;
}

std::int64_t IterationRecord::makespan_ns() const {
  std::int64_t end_ns = 0;
  for (const WorkerRecord& worker : workers) {
    for (const TaskRecord& task : worker.tasks) end_ns = std::max(end_ns, task.end_ns);
  }
  return end_ns;
}

std::int64_t IterationRecord::iteration_ns() const {
  std::int64_t end_ns = 0;
  for (const WorkerRecord& worker : workers) end_ns = std::max(end_ns, worker.end_ns);
  return end_ns;
}

std::int64_t IterationRecord::worst_stall_ns() const {
  std::int64_t worst_ns = 0;
  for (const WorkerRecord& worker : workers) worst_ns = std::max(worst_ns, worker.worst_stall_ns);
  return worst_ns;
}

}  // namespace rrfp
