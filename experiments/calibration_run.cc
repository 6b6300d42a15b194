#include "experiments/calibration_run.h"

namespace rrfp {

namespace {

class KeepingSink final : public IterationSink {
 public:
  Result<void> on_iteration(IterationRecord record) override {
    iterations.push_back(std::move(record));
    return {};
  }
  std::vector<IterationRecord> iterations;
};

}  // namespace

Result<Calibration> run_calibration(Job& job, const RunInput& input, int policy,
                                    const Options& options, RunOutcome& outcome) {
  Result<PreparedRun> prepared = input.prepare(policy, kCalibrationIterations);
  if (!prepared.ok()) return prepared.error();
  if (Result<void> tuned = tune(options, *prepared->plan); !tuned.ok()) return tuned.error();
  const Result<DeviceChoice> device = device_of(options);
  if (!device.ok()) return device.error();
  const Result<Equipment> equipment = equip(*device, *prepared->plan, job);
  if (!equipment.ok()) return equipment.error();
  auto sink = std::make_shared<KeepingSink>();
  Result<RunOutcome> ran = job.run(*prepared, equipment->device, sink, equipment->transport);
  if (!ran.ok()) return ran.error();
  outcome = *ran;
  Calibration calibration;
  if (!job.speaks() || outcome.end != RunEnd::kCompleted) return calibration;
  Overheads overheads;
  for (const IterationRecord& record : sink->iterations) {
    add_overheads(*prepared->plan, record, overheads);
  }
  calibration = calibrate(overheads);
  const int workers = prepared->plan->grid.size();
  const bool threads = job.processes() == nullptr;
  probe_timers(threads ? workers : 1, threads ? 100 : 200, calibration);
  calibration.workers = workers;
  return calibration;
}

}  // namespace rrfp
