// What the CUDA module offers to the program that opens it. No CUDA header is
// needed to include this, and nothing is linked to CUDA: a program that is
// linked to libcuda does not even start where there is no driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/device.h"
#include "executor/device_figures.h"
#include "executor/grid.h"
#include "executor/lane_exchange.h"
#include "executor/training_case.h"
#include "executor/transport.h"

namespace rrfp {

struct CpuTraining;

/// What this machine has, for people.
struct CudaSurvey {
  std::vector<std::string> devices;  ///< one line each
  std::vector<std::string> missing;  ///< why there is no more, one line per reason
};

/// Something that was tried on a device.
struct CudaCheck {
  std::string what;
  bool passed = false;
  std::string text;  ///< figures, or what went wrong
};
using OnCudaCheck = std::function<void(const CudaCheck& check)>;

struct CudaSettings {
  int device = 0;
  Grid grid;
  /// The workers in this process, which share the device: from this endpoint on.
  int first_endpoint = 0;
  int workers = 1;
  /// A message carries at most so many bytes.
  std::size_t payload_limit = std::numeric_limits<std::size_t>::max();
  /// What waits for another process for longer is taken for lost.
  std::int64_t patience_ns = 5'000'000'000;
  /// Processes that have met are connected within this (the patience, if that is
  /// longer; and a moment, see CudaPeerWait), or none of them is; and they measure their links
  /// within it.
  std::int64_t connect_ns = 300'000'000'000;
  /// Told what that is at, where it takes long, for people; may be empty.
  std::function<void(const std::string& what)> on_slow;
  /// Between two looks at what a stream has done; 0: look all the time.
  std::int64_t look_every_ns = 0;
  /// Matrix products of training may round their inputs to TF32.
  bool tf32 = false;
  /// Bytes of each lane's part in the largest sum that training makes.
  std::size_t largest_part_bytes = 0;
  /// For errors; empty: without the names of tasks.
  std::function<std::string(TaskId task)> name_of_task;

  /// Transfers may wait on the device for another process.
  bool connected() const { return workers < grid.size(); }
};

/// What workers that are processes need to reach each other.
struct CudaPeers {
  int endpoint = 0;  ///< this one
  /// Tensors travel from the first endpoint to the second: the same list, in
  /// the same order, in all processes.
  std::vector<std::pair<int, int>> channels;
  /// All processes, as lanes in the order of endpoints; null: there is one. Used
  /// during the call alone.
  LaneExchange* everyone = nullptr;
};

/// A device cut into one partition per worker of this process.
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
  /// To be called before the run that trains: libraries are opened and made
  /// ready here, for that may take longer than workers wait for each other.
  virtual Result<void> prepare_training() = 0;
  /// A device that trains. `exchange`: of the place's lanes; null where the
  /// session is connected, for then lanes sum through NCCL.
  virtual std::unique_ptr<Device> training_device(const Place& place,
                                                  std::shared_ptr<const CpuTraining> training,
                                                  std::shared_ptr<LaneExchange> exchange) = 0;
  /// Opens NCCL and connects this process with the others, which all do so at
  /// the same point. The error names the channel, or what NCCL lacks.
  virtual Result<void> connect(const CudaPeers& peers) = 0;
  /// Letters go over `control`. Tensors are copied on the device, or travel
  /// through NCCL where the session is connected.
  virtual std::unique_ptr<Transport> transport(const Place& place, Transport& control) = 0;
  /// What the device takes beside tasks, and the link of each of the peers'
  /// channels. `message_bytes`: of a large message. While no run uses the
  /// session; where it is connected, all processes at the same point, and all
  /// of them get the links of all.
  virtual Result<DeviceFigures> measure(const CudaPeers& peers, std::size_t message_bytes) = 0;
};

/// What the module exports, under the name kCudaModuleSymbol.
struct CudaModule {
  int version = 0;
  CudaSurvey (*survey)() = nullptr;
  /// Null on failure; then `error` says why, and begins with "no CUDA device"
  /// where there is none.
  CudaSession* (*open)(const CudaSettings& settings, std::string& error) = nullptr;
  /// What a microbatch takes of a device that trains; needs no device.
  StashBytes (*stash_bytes)(const ModelSpec& spec, const StageCut& cut,
                            std::span<const int> lengths) = nullptr;
  /// Tries what runs rely on, and tells of each thing as it is done; takes
  /// seconds. REQUIRES: the device is listed by survey().
  void (*check)(int device, const OnCudaCheck& tell) = nullptr;
};
inline constexpr int kCudaModuleVersion = 8;
inline constexpr const char* kCudaModuleSymbol = "rrfp_cuda_module";

}  // namespace rrfp
