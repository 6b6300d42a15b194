// What one worker writes down during one iteration. Times are of the run's one
// time line (RunClock). Plain data, so that it can travel as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/core_call.h"
#include "executor/letter.h"
#include "scheduler_core/program.h"
#include "scheduler_core/result.h"

namespace rrfp {

struct TaskRecord {
  TaskId task = kNoTask;
  std::int32_t unused = 0;
  std::int64_t ready_ns = 0;    ///< its last input or dependency was there
  std::int64_t decided_ns = 0;  ///< on a lane that is not the leader: it was told
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;  ///< -1: it did not end
};

/// A message, written down by its receiver.
struct ArrivalRecord {
  EdgeId edge = 0;
  std::int32_t microbatch = 0;
  std::int64_t finish_ns = 0;   ///< its producer's end; rendezvous: both ends have posted it
  std::int64_t sent_ns = 0;     ///< its transmission starts
  std::int64_t due_ns = 0;      ///< when this world has it arrive
  std::int64_t arrival_ns = 0;  ///< when the receiver saw it
  std::int64_t group_ns = 0;    ///< on the leader: when it had arrived for the group
  std::int64_t bytes = 0;       ///< of the payload that travelled
};

/// A notice or a credit, written down by who received it, of the message
/// (edge, microbatch): expected at eta_ns, or its buffer is free again.
struct SignalRecord {
  enum class Type : std::int32_t { kNotice, kCredit };
  Type type = Type::kNotice;
  EdgeId edge = 0;
  std::int32_t microbatch = 0;
  std::int32_t unused = 0;
  std::int64_t sent_ns = 0;
  std::int64_t seen_ns = 0;
  std::int64_t eta_ns = 0;  ///< notices
};

/// One stage's gradient is summed over the replicas, or the iteration ends.
struct SyncRecord {
  std::int32_t stage = 0;
  std::int32_t unused = 0;
  std::int64_t start_ns = 0;  ///< this replica's last accumulating task ended
  std::int64_t end_ns = 0;
};

struct WorkerRecord {
  std::int32_t endpoint = 0;
  std::int32_t iteration = 0;
  std::int64_t end_ns = 0;          ///< of everything, synchronisation included
  std::int64_t worst_stall_ns = 0;  ///< the longest that this thread did not look
  std::int64_t clock_offset_ns = 0;
  std::int64_t clock_error_ns = 0;
  std::int64_t peak_bytes = 0;
  std::vector<TaskRecord> tasks;  ///< in the order of their starts
  std::vector<ArrivalRecord> arrivals;
  std::vector<SyncRecord> syncs;
  std::vector<SignalRecord> signals;
  std::vector<CoreCall> calls;    ///< empty where no decision log is asked for
  std::vector<std::byte> report;  ///< of the device
};

Payload to_payload(const WorkerRecord& record);
Result<WorkerRecord> to_record(const Payload& payload);

/// An iteration of all workers, by endpoint.
struct IterationRecord {
  int iteration = 0;
  std::vector<WorkerRecord> workers;

  std::int64_t makespan_ns() const;   ///< end of the last task
  std::int64_t iteration_ns() const;  ///< synchronisation and optimizer included
  std::int64_t worst_stall_ns() const;
};

}  // namespace rrfp
