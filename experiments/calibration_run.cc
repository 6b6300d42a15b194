#include "experiments/calibration_run.h"

#include "experiments/kept_iterations.h"
#include "experiments/run_progress.h"

namespace rrfp {

namespace {

void append(const std::vector<std::int64_t>& from, std::vector<std::int64_t>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// Before the run, while the device is idle.
Result<void> measure_device(const Equipment& equipment, const DeviceChoice& choice,
                            const Grid& grid, Calibration& to) {
  if (!equipment.measure) return {};
  const Result<DeviceFigures> figures = equipment.measure();
  if (!figures.ok()) return figures.error();
  to.device = CalibratedDevice{equipment.about, figures->times};
  to.links = links_of_ranks(figures->links, grid);
  if (choice.payload_limit) {
    to.payload_limit_bytes = static_cast<std::int64_t>(*choice.payload_limit);
  }
  return {};
}

}  // namespace

Result<CalibrationPlan> plan_calibration(const RunInput& input, int policy,
                                         const Options& options) {
  Result<PreparedRun> prepared = input.prepare(policy, kCalibrationIterations);
  if (!prepared.ok()) return prepared.error();
  if (Result<void> tuned = tune(options, *prepared->plan); !tuned.ok()) return tuned.error();
  const Result<DeviceChoice> device = device_of(options);
  if (!device.ok()) return device.error();
  return CalibrationPlan{input.title(), std::move(*prepared), *device};
}

Result<Calibration> run_calibration(Job& job, CalibrationPlan& plan, const std::string& what,
                                    RunOutcome& outcome, Terminal& terminal) {
  PreparedRun& prepared = plan.prepared;
  const Result<Equipment> equipment = equip(plan.device, *prepared.plan, job);
  if (!equipment.ok()) return equipment.error();
  Calibration calibration;
  if (Result<void> measured = measure_device(*equipment, plan.device, plan.grid(), calibration);
      !measured.ok()) {
    return measured.error();
  }
  auto sink = std::make_shared<KeptIterations>();
  Result<RunOutcome> ran = run_with_progress(job, prepared, *equipment, sink, what, terminal);
  if (!ran.ok()) return ran.error();
  outcome = *ran;
  if (!job.speaks() || outcome.end != RunEnd::kCompleted) return calibration;
  Overheads overheads;
  std::vector<std::int64_t> extra_ns;  // of a task and a message together, by iteration
  for (const IterationRecord& record : sink->all) {
    Overheads of_iteration;
    add_overheads(*prepared.plan, record, calibration.links, of_iteration);
    Calibration alone;
    calibrate(of_iteration, alone);
    extra_ns.push_back(alone.task_extra_ns + alone.message_extra_ns);
    append(of_iteration.task_ns, overheads.task_ns);
    append(of_iteration.message_ns, overheads.message_ns);
  }
  calibrate(overheads, calibration);
  calibration.spread_permille =
      spread_permille(std::move(extra_ns), mean_task_ns(plan.world()) + calibration.task_extra_ns);
  calibration.job = plan.job;
  calibration.transport = job.name();
  const int workers = plan.grid().size();
  const bool threads = job.processes() == nullptr;
  probe_timers(threads ? workers : 1, threads ? 100 : 200, calibration);
  calibration.workers = workers;
  return calibration;
}

}  // namespace rrfp
