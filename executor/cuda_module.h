// What the CUDA module offers to the program that opens it. No CUDA header is
// needed to include this, and nothing is linked to CUDA: a program that is
// linked to libcuda does not even start where there is no driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "executor/device.h"
#include "executor/grid.h"
#include "executor/transport.h"

namespace rrfp {

/// What this machine has, for people.
struct CudaSurvey {
  std::vector<std::string> devices;  ///< one line each
  std::vector<std::string> missing;  ///< why there is no more, one line per reason
};

struct CudaSettings {
  int device = 0;
  Grid grid;  ///< all of its workers share the device
  /// A message carries at most so many bytes.
  std::size_t payload_limit = std::numeric_limits<std::size_t>::max();
  /// Between two looks at what a stream has done; 0: look all the time.
  std::int64_t look_every_ns = 0;
};

/// A device cut into one partition per worker, all in this process.
///
/// Thread safety: one thread; what it makes belongs to the workers, and may
/// outlive it.
class CudaSession {
 public:
  virtual ~CudaSession() = default;
  /// What the device was cut into.
  virtual std::string describe() const = 0;
  /// A device that works as long as the world says.
  virtual std::unique_ptr<Device> synthetic_device(const Place& place) = 0;
  /// Letters go over `control`; tensors are copied on the device.
  virtual std::unique_ptr<Transport> local_transport(const Place& place, Transport& control) = 0;
};

/// What the module exports, under the name kCudaModuleSymbol.
struct CudaModule {
  int version = 0;
  CudaSurvey (*survey)() = nullptr;
  /// Null on failure; then `error` says why, and begins with "no CUDA device"
  /// where there is none.
  CudaSession* (*open)(const CudaSettings& settings, std::string& error) = nullptr;
};
inline constexpr int kCudaModuleVersion = 1;
inline constexpr const char* kCudaModuleSymbol = "rrfp_cuda_module";

}  // namespace rrfp
