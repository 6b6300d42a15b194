#include "executor/capture.h"

#include <algorithm>

#include "executor/clock.h"
#include "executor/decision_log.h"
#include "traces/atomic_file.h"
#include "traces/native_trace_writer.h"

namespace rrfp {

Capture::Capture(std::shared_ptr<const RunPlan> plan, CaptureFiles files)
    : plan_(std::move(plan)), files_(std::move(files)) {
  if (!files_.decisions.empty()) decisions_ = decision_log_header(*plan_);
}

Result<void> Capture::on_iteration(IterationRecord record) {
  if (!files_.decisions.empty()) decisions_ += decision_log_of(*plan_, record);
  for (WorkerRecord& worker : record.workers) worker.calls = {};  // written down now
  iterations_.push_back(std::move(record));
  saved_ = false;
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  if (begin_ns < next_save_ns_) return {};
  Result<void> saved = save();
  const std::int64_t end_ns = MonotonicClock::read_ns();
  next_save_ns_ = end_ns + 10 * (end_ns - begin_ns) + 200'000'000;
  return saved;
}

Result<void> Capture::finish() { return saved_ ? Result<void>{} : save(); }

Result<void> Capture::save() {
  if (!files_.trace.empty()) {
    if (Result<void> written = save_trace(); !written.ok()) return written;
  }
  if (!files_.decisions.empty()) {
    Result<void> written = write_file_atomically(files_.decisions, decisions_);
    if (!written.ok()) return written;
  }
  saved_ = true;
  return {};
}

Result<void> Capture::save_trace() {
  TraceHeader header(plan_->world(0, 0).program());
  header.name = files_.name;
  header.replicas = plan_->grid.replicas;
  header.lanes = plan_->grid.lanes;
  header.versions = files_.versions;
  if (!iterations_.empty()) {
    for (const WorkerRecord& worker : iterations_.back().workers) {
      if (worker.clock_error_ns == 0) continue;  // it reads the clock of endpoint 0
      header.clocks.push_back({worker.endpoint, -worker.clock_offset_ns, 0, worker.clock_error_ns});
    }
  }
  Result<NativeTraceWriter> writer = NativeTraceWriter::create(files_.trace, header);
  if (!writer.ok()) return writer.error();
  for (const IterationRecord& iteration : iterations_) {
    for (const TraceRecord& record : to_trace(*plan_, iteration)) writer->add(record);
  }
  return writer->finish();
}

std::vector<TraceRecord> to_trace(const RunPlan& plan, const IterationRecord& record) {
  std::vector<TraceRecord> records;
  for (const WorkerRecord& worker : record.workers) {
    const Place place = plan.grid.place(worker.endpoint);
    const PreparedCase& world = plan.world(record.iteration, place.replica);
    const Program& program = world.program();
    for (const TaskRecord& task : worker.tasks) {
      records.push_back(TraceTask{record.iteration, place.replica, place.rank, place.lane,
                                  program.task(task.task), task.ready_ns, task.decided_ns,
                                  task.start_ns, task.end_ns});
    }
    for (const ArrivalRecord& arrival : worker.arrivals) {
      const Edge& edge = program.edge(arrival.edge);
      const auto message =
          static_cast<std::size_t>(arrival.edge * program.microbatches() + arrival.microbatch);
      TraceMessage out;
      out.iteration = record.iteration;
      out.replica = place.replica;
      out.lane = place.lane;
      out.kind = edge.kind;
      out.from_stage = edge.from;
      out.to_stage = edge.to;
      out.microbatch = arrival.microbatch;
      out.bytes = world.message_bytes()[message];
      out.sequence = arrival.microbatch;
      out.send = {arrival.finish_ns, arrival.sent_ns,
                  std::min(arrival.sent_ns + world.busy_ns()[message], arrival.arrival_ns)};
      out.receive = {arrival.sent_ns, arrival.sent_ns, arrival.arrival_ns};
      records.push_back(out);
    }
    for (const SyncRecord& sync : worker.syncs) {
      TraceSpan span;
      span.iteration = record.iteration;
      span.replica = place.replica;
      span.rank = place.rank;
      span.lane = place.lane;
      span.name = "gradient-sync";
      span.group = "stage " + std::to_string(sync.stage) + " lane " + std::to_string(place.lane);
      span.start_ns = sync.start_ns;
      span.end_ns = sync.end_ns;
      records.push_back(span);
    }
  }
  return records;
}

}  // namespace rrfp
