// What the workers of a run compute with and how their tensors travel, by the
// name that a user gives.
//
// Thread safety: pure functions but for the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "executor/grid.h"
#include "executor/threads_run.h"
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
  /// Bytes of a message that travel; none: 4096 where tasks are emulated, else
  /// all.
  std::optional<std::size_t> payload_limit;
};

/// Fits Job::run.
struct Equipment {
  std::string about;  ///< of the devices, for people; may be empty
  DeviceMaker device;
  TransportMaker transport;  ///< empty: payloads are bytes of the host
};

/// What a run that trains asks for.
struct TrainingChoice {
  bool cuda = false;  ///< else the workers' own threads compute
  bool tf32 = false;  ///< matrix products may round their inputs to TF32
};

/// What the model takes of such devices, for TrainingSetup. The error is one
/// sentence that begins with "no CUDA device".
Result<TrainingFootprint> footprint_of(const TrainingChoice& choice);

/// For the workers of `run`, all in this process unless `over_mpi`; errors as
/// of equip().
Result<Equipment> equip_training(const TrainingChoice& choice, const TrainingRun& run,
                                 bool over_mpi, const ExchangeOf& exchange_of);

/// For the workers of `grid`, all in this process unless `over_mpi`. The error
/// of a device that is not there is one sentence that begins with "no CUDA
/// device".
Result<Equipment> equip(const DeviceChoice& choice, const Grid& grid, bool over_mpi);

}  // namespace rrfp
