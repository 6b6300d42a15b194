// The module's one entry point.
#include "executor/cuda_check.h"
#include "executor/cuda_compute.h"
#include "executor/cuda_connections.h"
#include "executor/cuda_figures.h"
#include "executor/cuda_local_transport.h"
#include "executor/cuda_module.h"
#include "executor/cuda_partition.h"
#include "executor/cuda_survey.h"
#include "executor/cuda_synthetic_device.h"
#include "executor/cuda_training_device.h"

namespace rrfp {

namespace {

class Session final : public CudaSession {
 public:
  Session(const CudaSettings& settings, CudaDevicePartitions partitions)
      : settings_(settings),
        partitions_(std::make_shared<CudaDevicePartitions>(std::move(partitions))) {}

  std::string describe() const override {
    return partitions_->describe() +
           (connections_ != nullptr ? ", " + connections_->describe() : "");
  }
  std::unique_ptr<Device> synthetic_device(const Place& place) override {
    auto made =
        std::make_unique<CudaSyntheticDevice>(partitions_, partition(place), place, settings_,
                                              connections_ != nullptr ? connections_->sms() : 0);
    if (connections_ != nullptr) made->set_on_stop([kept = connections_] { kept->abort(); });
    return made;
  }
  Result<void> prepare_training() override {
    const Result<std::unique_ptr<CudaCompute>> tried =
        CudaCompute::create(partitions_->partition(0).compute(), settings_.tf32);
    return tried.ok() ? Result<void>{} : tried.error();
  }
  std::unique_ptr<Device> training_device(const Place& place,
                                          std::shared_ptr<const CpuTraining> training,
                                          std::shared_ptr<LaneExchange> exchange) override {
    LaneGatherMaker gather;
    std::function<void()> on_stop;
    if (connections_ == nullptr) {
      gather = [exchange](std::size_t most) { return gather_through_host(exchange, most); };
      on_stop = [exchange] { exchange->leave(); };
    } else {
      gather = [kept = connections_](std::size_t) -> Result<std::unique_ptr<CudaLaneGather>> {
        return kept->lane_gather(kept);
      };
      on_stop = [kept = connections_] { kept->abort(); };
    }
    auto made = std::make_unique<CudaTrainingDevice>(
        partitions_, partition(place), place, settings_, std::move(training), std::move(gather));
    made->set_on_stop(std::move(on_stop));
    return made;
  }
  Result<void> connect(const CudaPeers& peers) override {
    Result<std::shared_ptr<CudaConnections>> made = connect_cuda(settings_, peers, partitions_);
    if (!made.ok()) return made.error();
    connections_ = std::move(*made);
    return {};
  }
  std::unique_ptr<Transport> transport(const Place& place, Transport& control) override {
    if (connections_ != nullptr) return connections_->transport(connections_, control);
    return std::make_unique<CudaLocalTransport>(partitions_, partition(place), control,
                                                settings_.look_every_ns);
  }
  Result<DeviceFigures> measure(const CudaPeers& peers, std::size_t message_bytes) override {
    const Result<DeviceTimes> times = measure_times(*partitions_);
    if (connections_ == nullptr && !times.ok()) return times.error();
    // Of a process that could not, the others learn here.
    const Result<std::vector<LinkFigures>> links =
        connections_ != nullptr ? connections_->measure(peers, message_bytes, times)
                                : measure_copies(*partitions_, peers.channels, message_bytes);
    if (!links.ok()) return links.error();
    return DeviceFigures{*times, *links};
  }

 private:
  CudaPartition& partition(const Place& place) {
    return partitions_->partition(settings_.grid.endpoint(place) - settings_.first_endpoint);
  }

  const CudaSettings settings_;
  const std::shared_ptr<CudaDevicePartitions> partitions_;
  std::shared_ptr<CudaConnections> connections_;  // null: one process
};

// Several processes take a device each, in their order on the host. A launcher that binds one to
// each shows a process that one only.
Result<int> choose_device(const CudaSettings& settings) {
  const Result<int> count = count_cuda_devices();
  if (!count.ok()) return count.error();
  const bool one_of_many = settings.connected();
  if (one_of_many && *count == 1) return 0;
  if (settings.device >= 0 && settings.device < *count) return settings.device;
  return Error{"no CUDA device " + std::to_string(settings.device) + ": the driver sees " +
               std::to_string(*count) + ", numbered from 0" +
               (one_of_many ? "; start no more processes on a host than it has GPUs" : "")};
}

CudaSession* open_session(const CudaSettings& asked, std::string& error) {
  CudaSettings settings = asked;
  const Result<int> device = choose_device(asked);
  if (!device.ok()) {
    error = device.error().message;
    return nullptr;
  }
  settings.device = *device;
  Result<CudaDevicePartitions> partitions =
      CudaDevicePartitions::create(settings.device, settings.workers);
  if (!partitions.ok()) {
    error = "device " + std::to_string(settings.device) + ": " + partitions.error().message;
    return nullptr;
  }
  return new Session(settings, std::move(*partitions));
}

}  // namespace

#if !RRFP_CUDA_NCCL
Result<std::shared_ptr<CudaConnections>> connect_cuda(const CudaSettings&, const CudaPeers&,
                                                      std::shared_ptr<CudaDevicePartitions>) {
  return Error{
      "several processes with a GPU each need NCCL, and rrfp was built without it (there was no "
      "nccl.h); run one process, whose ranks then share one GPU"};
}
#endif

}  // namespace rrfp

extern "C" {
extern __attribute__((visibility("default"))) const rrfp::CudaModule rrfp_cuda_module;
const rrfp::CudaModule rrfp_cuda_module = {rrfp::kCudaModuleVersion, rrfp::survey_cuda,
                                           rrfp::open_session, rrfp::cuda_stash_bytes,
                                           rrfp::check_cuda_device};
}
