#include "executor/equipment.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <thread>

#include "executor/emulated_device.h"
#include "executor/module_loader.h"

namespace rrfp {

namespace {

constexpr std::size_t kEmulatedPayload = 4096;

// Where there are cores enough, a worker looks all the time.
std::int64_t between_looks_ns(int workers) {
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return 2 * workers <= cores ? 0 : 50'000;
}

Equipment emulated(const Grid& grid, std::size_t payload_limit) {
  Equipment equipment;
  equipment.device = [lanes = grid.lanes, payload_limit](const Place&) {
    return std::make_unique<EmulatedDevice>(lanes, payload_limit);
  };
  return equipment;
}

Result<std::shared_ptr<CudaSession>> open_session(CudaSettings settings, bool over_mpi) {
  settings.look_every_ns = between_looks_ns(settings.grid.size());
  const Result<const CudaModule*> module = open_cuda();
  if (!module.ok()) return module.error();
  std::string error;
  std::shared_ptr<CudaSession> session((*module)->open(settings, error));
  if (session == nullptr) return Error{error};
  if (over_mpi) {
    return Error{
        "several processes cannot share CUDA devices yet; run one process, whose ranks "
        "then share one device"};
  }
  return session;
}

// But for what computes.
Equipment around(const std::shared_ptr<CudaSession>& session) {
  Equipment equipment;
  equipment.about = session->describe();
  equipment.transport = [session](const Place& place, Transport& control) {
    return session->local_transport(place, control);
  };
  return equipment;
}

}  // namespace

Result<Equipment> equip(const DeviceChoice& choice, const Grid& grid, bool over_mpi) {
  if (choice.kind == DeviceKind::kEmulated) {
    return emulated(grid, choice.payload_limit.value_or(kEmulatedPayload));
  }
  CudaSettings settings;
  settings.grid = grid;
  settings.payload_limit = choice.payload_limit.value_or(std::numeric_limits<std::size_t>::max());
  const Result<std::shared_ptr<CudaSession>> session = open_session(settings, over_mpi);
  if (!session.ok()) return session.error();
  if (choice.kind == DeviceKind::kCuda) {
    return Error{
        "tasks of a scenario are synthetic work on CUDA devices: --device synthetic; "
        "rrfp train --device cuda trains on them"};
  }
  Equipment equipment = around(*session);
  equipment.device = [session = *session](const Place& place) {
    return session->synthetic_device(place);
  };
  return equipment;
}

Result<TrainingFootprint> footprint_of(const TrainingChoice& choice) {
  if (!choice.cuda) return TrainingFootprint{};
  const Result<const CudaModule*> module = open_cuda();
  if (!module.ok()) return module.error();
  return TrainingFootprint{sizeof(float), (*module)->stash_bytes};
}

Result<Equipment> equip_training(const TrainingChoice& choice, const TrainingRun& run,
                                 bool over_mpi, const ExchangeOf& exchange_of) {
  if (!choice.cuda) {
    Equipment equipment;
    equipment.device = run.devices(exchange_of);
    return equipment;
  }
  CudaSettings settings;
  settings.grid = run.plan().grid;
  settings.tf32 = choice.tf32;
  const Result<std::shared_ptr<CudaSession>> session = open_session(settings, over_mpi);
  if (!session.ok()) return session.error();
  if (Result<void> prepared = (*session)->prepare_training(); !prepared.ok()) {
    return prepared.error();
  }
  Equipment equipment = around(*session);
  equipment.device = [session = *session, exchange_of,
                      training = run.training](const Place& place) {
    return session->training_device(place, training, exchange_of(place));
  };
  return equipment;
}

}  // namespace rrfp
