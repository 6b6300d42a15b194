// What a device takes for what it does beside tasks, as the module that drives
// it measures it: by the device's own clock but where it says "host".
//
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <vector>

namespace rrfp {

/// All of the median.
struct DeviceTimes {
  std::int64_t launch_ns = 0;  ///< of the host, for the launch of a kernel
  /// Of the host, from leaving a mark in an idle stream to seeing it passed.
  std::int64_t flag_ns = 0;
  std::int64_t kernel_ns = 0;  ///< a kernel that does next to nothing
  /// The same work on all partitions of the device at a time, over that on one
  /// alone: at least 1000.
  std::int64_t contention_permille = 1000;

  friend bool operator==(const DeviceTimes&, const DeviceTimes&) = default;
};

/// The way of tensors from one endpoint to another, while nothing else runs: a
/// message takes latency_ns and a microsecond per bytes_per_us.
struct LinkFigures {
  int from = 0;
  int to = 0;
  std::int64_t latency_ns = 0;
  std::int64_t bytes_per_us = 0;
};

struct DeviceFigures {
  DeviceTimes times;
  std::vector<LinkFigures> links;
};

}  // namespace rrfp
