#include "executor/process_run.h"

namespace rrfp {

RunOutcome run_in_process(const RunPlan& plan, Device& device, IterationSink& sink,
                          Transport& transport, const std::atomic<bool>& stop, WaitingLine& line) {
  const MonotonicClock clock;
  Worker worker(plan, transport, device, clock, transport.endpoint() == 0 ? &sink : nullptr, stop,
                &line);
  const WorkerEnd end = worker.run();
  RunOutcome outcome;
  outcome.end = end.end;
  if (end.end == RunEnd::kCompleted) return outcome;
  outcome.why = end.why;
  outcome.waiting.push_back(end.waiting);
  const Place place = plan.grid.place(transport.endpoint());
  if (end.end == RunEnd::kBlocked && place.lane == 0 && end.next_task != kNoTask) {
    outcome.blocked.push_back(plan.world(0, place.replica).program().task(end.next_task));
  }
  return outcome;
}

}  // namespace rrfp
