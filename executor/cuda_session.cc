// The module's one entry point.
#include "executor/cuda_compute.h"
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

  std::string describe() const override { return partitions_->describe(); }
  std::unique_ptr<Device> synthetic_device(const Place& place) override {
    return std::make_unique<CudaSyntheticDevice>(partitions_, partition(place), place, settings_);
  }
  Result<void> prepare_training() override {
    const Result<std::unique_ptr<CudaCompute>> tried =
        CudaCompute::create(partitions_->partition(0).compute(), settings_.tf32);
    return tried.ok() ? Result<void>{} : tried.error();
  }
  std::unique_ptr<Device> training_device(const Place& place,
                                          std::shared_ptr<const CpuTraining> training,
                                          std::shared_ptr<LaneExchange> exchange) override {
    return std::make_unique<CudaTrainingDevice>(partitions_, partition(place), place, settings_,
                                                std::move(training), std::move(exchange));
  }
  Result<void> connect(const CudaPeers&) override {
    return Error{
        "several processes cannot share CUDA devices yet; run one process, whose ranks "
        "then share one device"};
  }
  std::unique_ptr<Transport> transport(const Place& place, Transport& control) override {
    return std::make_unique<CudaLocalTransport>(partitions_, partition(place), control,
                                                settings_.look_every_ns);
  }

 private:
  CudaPartition& partition(const Place& place) {
    return partitions_->partition(settings_.grid.endpoint(place) - settings_.first_endpoint);
  }

  const CudaSettings settings_;
  const std::shared_ptr<CudaDevicePartitions> partitions_;
};

CudaSession* open_session(const CudaSettings& settings, std::string& error) {
  const Result<int> count = count_cuda_devices();
  if (!count.ok()) {
    error = count.error().message;
    return nullptr;
  }
  Result<CudaDevicePartitions> partitions =
      CudaDevicePartitions::create(settings.device, settings.workers);
  if (!partitions.ok()) {
    error = "device " + std::to_string(settings.device) + ": " + partitions.error().message;
    return nullptr;
  }
  return new Session(settings, std::move(*partitions));
}

}  // namespace

}  // namespace rrfp

extern "C" {
extern __attribute__((visibility("default"))) const rrfp::CudaModule rrfp_cuda_module;
const rrfp::CudaModule rrfp_cuda_module = {rrfp::kCudaModuleVersion, rrfp::survey_cuda,
                                           rrfp::open_session, rrfp::cuda_stash_bytes};
}
