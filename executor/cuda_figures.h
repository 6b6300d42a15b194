// Measures what a device takes for what it does beside tasks: to launch, to
// tell the host, to copy from one partition to another; and what partitions
// take from each other when all are busy. By CUDA events where the device is
// measured, after a warm-up, as medians. A calibration keeps it.
//
// Thread safety: one thread, while no worker uses the partitions.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "executor/cuda_partition.h"
#include "executor/device_figures.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// Takes some hundred milliseconds.
Result<DeviceTimes> measure_times(CudaDevicePartitions& partitions);

/// One entry per channel: from one partition to another, as CudaLocalTransport
/// copies. `message_bytes`: of a large message.
Result<std::vector<LinkFigures>> measure_copies(CudaDevicePartitions& partitions,
                                                std::span<const std::pair<int, int>> channels,
                                                std::size_t message_bytes);

/// What took `small_ns` and `large_ns` for as many bytes as a line: latency and
/// speed, within what a calibration may hold. REQUIRES: small_bytes < large_bytes.
LinkFigures fit_link(std::pair<int, int> channel, std::size_t small_bytes, double small_ns,
                     std::size_t large_bytes, double large_ns);

}  // namespace rrfp
