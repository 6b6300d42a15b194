// Measures what a device takes for what it does beside tasks: to launch, to
// tell the host, to copy from one partition to another; and what partitions
// take from each other when all are busy. By CUDA events where the device is
// measured, after a warm-up, as medians. A calibration keeps it.
//
// Thread safety: one thread, while no worker uses the partitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "executor/cuda_partition.h"
#include "executor/device_figures.h"
#include "scheduler_core/result.h"

namespace rrfp {

inline constexpr int kFigureWarmUps = 3;
inline constexpr int kFigureRounds = 15;
/// Links are measured with messages of two sizes.
inline constexpr std::size_t kSmallMessage = 4096;
/// `message_bytes`, where that is much more than a small one and not too much.
std::size_t large_message(std::size_t message_bytes);

/// Work of some hundred microseconds: what is enqueued behind it is in the
/// stream before the device gets there, and the host's time to enqueue it is no
/// part of what is measured.
Result<void> launch_lead(CudaPartition& partition, cudaStream_t stream);

/// Leaves a mark in an otherwise busy or idle stream, and looks until it is
/// passed: how long after `begin_ns` that was. The error: not within `most_ns`.
Result<std::int64_t> passed_after_ns(CudaMarks& marks, std::int64_t begin_ns, std::int64_t most_ns);

/// Takes some hundred milliseconds.
Result<DeviceTimes> measure_times(CudaDevicePartitions& partitions);

/// One entry per channel: from one partition to another, as CudaLocalTransport
/// copies. `message_bytes`: of a large message.
Result<std::vector<LinkFigures>> measure_copies(CudaDevicePartitions& partitions,
                                                std::span<const std::pair<int, int>> channels,
                                                std::size_t message_bytes);

/// A small message took `small_ns` and one of `large_bytes` `large_ns`: latency
/// and speed, within what a calibration may hold. REQUIRES: large_bytes is larger.
LinkFigures fit_link(std::pair<int, int> channel, double small_ns, std::size_t large_bytes,
                     double large_ns);

}  // namespace rrfp
