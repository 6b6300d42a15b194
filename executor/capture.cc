#include "executor/capture.h"

#include <algorithm>

#include "executor/decision_log.h"

namespace rrfp {

Capture::Capture(std::shared_ptr<const RunPlan> plan, CaptureFiles files)
    : plan_(std::move(plan)), files_(std::move(files)) {
  if (!files_.decisions.empty()) decisions_.emplace(files_.decisions);
}

Result<void> Capture::on_iteration(IterationRecord record) {
  std::int64_t clock_error_ns = 0;
  for (const WorkerRecord& worker : record.workers) {
    clock_error_ns = std::max(clock_error_ns, worker.clock_error_ns);
  }
  figures_.push_back(
      {record.makespan_ns(), record.iteration_ns(), record.worst_stall_ns(), clock_error_ns});
  if (Result<void> added = add_to_trace(record); !added.ok()) return added;
  return add_to_decisions(record);
}

Result<void> Capture::finish() {
  if (!files_.trace.empty()) {
    if (!trace_) {
      if (Result<void> opened = open_trace(nullptr); !opened.ok()) return opened;
    }
    if (Result<void> written = trace_->finish(); !written.ok()) return written;
  }
  if (!decisions_ || decisions_begun_) return {};
  return decisions_->append(decision_log_header(*plan_));
}

Result<void> Capture::open_trace(const IterationRecord* first) {
  TraceHeader header(plan_->world(0, 0).program());
  header.name = files_.name;
  header.replicas = plan_->grid.replicas;
  header.lanes = plan_->grid.lanes;
  header.checkpoints = true;
  header.versions = files_.versions;
  // Measured before each iteration, and corrected in every record; the first
  // measurement stands for all.
  for (std::size_t i = 0; first != nullptr && i < first->workers.size(); ++i) {
    const WorkerRecord& worker = first->workers[i];
    if (worker.clock_error_ns == 0) continue;  // it reads the clock of endpoint 0
    header.clocks.push_back({worker.endpoint, -worker.clock_offset_ns, 0, worker.clock_error_ns});
  }
  Result<NativeTraceWriter> writer = NativeTraceWriter::create(files_.trace, header);
  if (!writer.ok()) return writer.error();
  trace_ = std::move(*writer);
  return {};
}

Result<void> Capture::add_to_trace(const IterationRecord& record) {
  if (files_.trace.empty()) return {};
  if (!trace_) {
    if (Result<void> opened = open_trace(&record); !opened.ok()) return opened;
  }
  for (const TraceRecord& of : to_trace(*plan_, record)) trace_->add(of);
  return trace_->checkpoint();
}

Result<void> Capture::add_to_decisions(const IterationRecord& record) {
  if (!decisions_) return {};
  const std::string header = decisions_begun_ ? "" : decision_log_header(*plan_);
  decisions_begun_ = true;
  return decisions_->append(header + decision_log_of(*plan_, record));
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
    for (const SignalRecord& signal : worker.signals) {
      const Edge& edge = program.edge(signal.edge);
      if (signal.type == SignalRecord::Type::kNotice) {
        records.push_back(TraceNotice{record.iteration, place.replica, edge.kind, edge.from,
                                      edge.to, signal.microbatch, signal.sent_ns, signal.seen_ns,
                                      signal.eta_ns});
      } else {
        records.push_back(TraceCredit{record.iteration, place.replica, place.lane, edge.from,
                                      edge.to, signal.microbatch, signal.sent_ns, signal.seen_ns});
      }
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
