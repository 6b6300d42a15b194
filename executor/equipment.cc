#include "executor/equipment.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>

#include "executor/agreement.h"
#include "executor/core_count.h"
#include "executor/emulated_device.h"
#include "executor/model_cut.h"
#include "executor/module_loader.h"

namespace rrfp {

namespace {

constexpr std::size_t kEmulatedPayload = 4096;

// Where there are cores enough, a worker looks all the time.
std::int64_t between_looks_ns(int workers, int cores) { return 2 * workers <= cores ? 0 : 50'000; }

Equipment emulated(const Grid& grid, std::size_t payload_limit) {
  Equipment equipment;
  equipment.device = [lanes = grid.lanes, payload_limit](const Place&) {
    return std::make_unique<EmulatedDevice>(lanes, payload_limit);
  };
  return equipment;
}

Result<std::shared_ptr<CudaSession>> open_session(const CudaSettings& settings) {
  const Result<const CudaModule*> module = open_cuda();
  if (!module.ok()) return module.error();
  std::string error;
  std::shared_ptr<CudaSession> session((*module)->open(settings, error));
  if (session == nullptr) return Error{error};
  return session;
}

// What has to be done with a session before it is connected.
using Preparation = std::function<Result<void>(CudaSession&)>;

CudaPeers peers_of(const RunPlan& plan, Job& job) {
  CudaPeers peers;
  peers.channels = tensor_channels(plan);
  peers.everyone = job.everyone();
  if (peers.everyone != nullptr) peers.endpoint = job.processes()->transport().endpoint();
  return peers;
}

// A session for the workers of this process: all of them on one device, or one on its own, which is
// then connected to the others.
Result<std::shared_ptr<CudaSession>> open_session(CudaSettings settings, std::optional<int> gpu,
                                                  const RunPlan& plan, Job& job,
                                                  const Preparation& prepare) {
  const CudaPeers peers = peers_of(plan, job);
  settings.grid = plan.grid;
  settings.device = gpu.value_or(0);
  settings.patience_ns = plan.tuning.patience_ns;
  settings.name_of_task = [program = plan.world(0, 0).program()](TaskId task) {
    return to_string(program.task(task));
  };
  settings.connect_ns = job.meeting().agreement_patience_ns;
  settings.on_slow = job.meeting().on_progress;
  settings.workers = plan.grid.size();
  settings.look_every_ns = between_looks_ns(settings.workers, core_count());
  if (peers.everyone != nullptr) {
    settings.first_endpoint = peers.endpoint;
    settings.workers = 1;
    const Result<HostShare> here = share_of_host(*peers.everyone, peers.endpoint);
    if (!here.ok()) return here.error();
    if (!gpu) settings.device = job.local_process().value_or(here->before);
    settings.look_every_ns = between_looks_ns(here->processes, launcher_core_count());
  }
  Result<std::shared_ptr<CudaSession>> session = open_session(settings);
  Result<void> able;
  if (!session.ok()) able = session.error();
  if (session.ok()) able = prepare(**session);
  if (able = job.agree(able); !able.ok()) return able.error();
  // All have one error, or could not be asked and are not waited for again; the job must know
  // which.
  if (peers.everyone != nullptr) able = job.agree((*session)->connect(peers));
  if (!able.ok()) return able.error();
  return session;
}

// More workers than these on a GPU have a few SMs each, and slow each other.
constexpr int kManyOnGpu = 8;

// Where the workers of one process share a GPU.
std::string advice_to_spread(int workers, int gpu) {
  if (workers <= kManyOnGpu) return {};
  const std::string count = std::to_string(workers);
  return count + " workers (a rank, lane and replica each) share GPU " + std::to_string(gpu) +
         " and its memory, so they slow each other; for a GPU each, start as many "
         "processes: mpirun -n " +
         count + " rrfp ..., srun --mpi=pmix -n " + count +
         " rrfp ..., or RANK=0, 1, ... with WORLD_SIZE=" + count;
}

// But for what computes.
Equipment around(const std::shared_ptr<CudaSession>& session, const RunPlan& plan, const Job& job,
                 std::optional<int> gpu) {
  Equipment equipment;
  equipment.about = session->describe();
  if (job.processes() == nullptr) {
    equipment.advice = advice_to_spread(plan.grid.size(), gpu.value_or(0));
  }
  equipment.transport = [session](const Place& place, Transport& control) {
    return session->transport(place, control);
  };
  return equipment;
}

// What the lanes of a rank add up are activations of a stage, at most those of all its roots.
std::size_t largest_part_bytes(const ModelSpec& spec, const Program& program) {
  const Result<std::vector<StageCut>> cuts = cut_model(spec, program);
  if (!cuts.ok()) return 0;  // as a device will say, too
  std::size_t roots = 0;
  for (const StageCut& cut : *cuts) roots = std::max(roots, cut.roots.size());
  return roots * static_cast<std::size_t>(spec.longest) * static_cast<std::size_t>(spec.width) *
         sizeof(float);
}

}  // namespace

Result<Equipment> equip(const DeviceChoice& choice, const RunPlan& plan, Job& job) {
  if (choice.kind == DeviceKind::kEmulated) {
    return emulated(plan.grid, choice.payload_limit.value_or(kEmulatedPayload));
  }
  CudaSettings settings;
  settings.payload_limit = choice.payload_limit.value_or(std::numeric_limits<std::size_t>::max());
  const Result<std::shared_ptr<CudaSession>> session =
      open_session(settings, choice.gpu, plan, job, [&](CudaSession&) -> Result<void> {
        if (choice.kind != DeviceKind::kCuda) return {};
        return Error{
            "tasks of a scenario are synthetic work on CUDA devices: --device synthetic; "
            "rrfp train --device cuda trains on them"};
      });
  if (!session.ok()) return session.error();
  Equipment equipment = around(*session, plan, job, choice.gpu);
  equipment.device = [session = *session](const Place& place) {
    return session->synthetic_device(place);
  };
  const std::vector<std::int64_t>& bytes = plan.world(0, 0).message_bytes();
  const std::int64_t largest = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  const std::size_t message_bytes =
      std::min(static_cast<std::size_t>(largest), settings.payload_limit);
  equipment.measure = [session = *session, &plan, &job, message_bytes] {
    Result<DeviceFigures> figures = session->measure(peers_of(plan, job), message_bytes);
    const Result<void> able = job.agree(figures.ok() ? Result<void>() : figures.error());
    return able.ok() ? std::move(figures) : able.error();
  };
  return equipment;
}

Result<TrainingFootprint> footprint_of(const TrainingChoice& choice) {
  if (!choice.cuda) return TrainingFootprint{};
  const Result<const CudaModule*> module = open_cuda();
  if (!module.ok()) return module.error();
  return TrainingFootprint{sizeof(float), (*module)->stash_bytes};
}

Result<Equipment> equip_training(const TrainingChoice& choice, const TrainingRun& run, Job& job) {
  const RunPlan& plan = run.plan();
  const ExchangeOf exchange_of = [&job, &plan](const Place& place) {
    return job.lane_exchange(plan.grid, place, plan.tuning.patience_ns);
  };
  if (!choice.cuda) {
    Equipment equipment;
    equipment.device = run.devices(exchange_of);
    return equipment;
  }
  CudaSettings settings;
  settings.tf32 = choice.tf32;
  if (plan.grid.lanes > 1) {
    settings.largest_part_bytes = largest_part_bytes(run.training->spec.model, run.program());
  }
  const Result<std::shared_ptr<CudaSession>> session =
      open_session(settings, choice.gpu, plan, job,
                   [](CudaSession& opened) { return opened.prepare_training(); });
  if (!session.ok()) return session.error();
  Equipment equipment = around(*session, plan, job, choice.gpu);
  equipment.device = [session = *session, exchange_of, &job,
                      training = run.training](const Place& place) {
    const bool connected = job.processes() != nullptr;
    return session->training_device(place, training, connected ? nullptr : exchange_of(place));
  };
  return equipment;
}

}  // namespace rrfp
