// What the workers of a run compute with and how their tensors travel, by the
// name that a user gives.
//
// Thread safety: pure functions but for the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "executor/device_figures.h"
#include "executor/job.h"
#include "executor/training_run.h"
#include "scheduler_core/result.h"

namespace rrfp {

enum class DeviceKind : std::uint8_t {
  kEmulated,   ///< takes its time, on any machine
  kSynthetic,  ///< a GPU works for as long
  kCuda,       ///< a GPU trains
};

struct DeviceChoice {
  DeviceKind kind = DeviceKind::kEmulated;
  /// Which of the GPUs that the process sees; none: the first, or, where several
  /// processes share a host, that of the process's number there: the launcher's
  /// (LOCAL_RANK and the like), else its place among the processes of the host.
  std::optional<int> gpu;
  /// Bytes of a message that travel; none: 4096 where tasks are emulated, else
  /// all.
  std::optional<std::size_t> payload_limit;
};

/// Fits Job::run.
struct Equipment {
  using Measure = std::function<Result<DeviceFigures>()>;
  std::string about;   ///< of the devices, for people; may be empty
  std::string advice;  ///< how they would be of more use, one sentence; mostly empty
  DeviceMaker device;
  TransportMaker transport;  ///< empty: payloads are bytes of the host
  /// What the devices take beside tasks, before the run; all processes call it
  /// at the same point. Empty: they are none. Plan and job outlive it.
  Measure measure;
};

/// What a run that trains asks for.
struct TrainingChoice {
  bool cuda = false;       ///< else the workers' own threads compute
  std::optional<int> gpu;  ///< as in DeviceChoice
  bool tf32 = false;       ///< matrix products may round their inputs to TF32
};

/// What the model takes of such devices, for TrainingSetup. The error is one
/// sentence that begins with "no CUDA device".
Result<TrainingFootprint> footprint_of(const TrainingChoice& choice);

/// For the workers of `plan` in this process. All processes of the job call it
/// at the same point. The error of a device that is not there is one sentence
/// that begins with "no CUDA device".
Result<Equipment> equip(const DeviceChoice& choice, const RunPlan& plan, Job& job);

/// The same for a run that trains. `job` outlives the equipment.
Result<Equipment> equip_training(const TrainingChoice& choice, const TrainingRun& run, Job& job);

}  // namespace rrfp
