#include "executor/cuda_nccl_meeting.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <type_traits>

#include "executor/agreement.h"
#include "executor/cuda_error.h"
#include "executor/cuda_nccl_communicator.h"

namespace rrfp {

namespace {

static_assert(std::is_trivially_copyable_v<CudaGreeting>);

Result<void> describe_device(int device, CudaGreeting& to) {
  gethostname(to.host, sizeof(to.host) - 1);
  return check_cuda("cudaDeviceGetPCIBusId", cudaDeviceGetPCIBusId(to.gpu, sizeof(to.gpu), device));
}

// This process's greeting, and the identifiers of the channels that it sends on.
Result<void> introduce(const CudaSettings& settings, const CudaPeers& peers,
                       const Result<CudaNcclFunctions>& nccl, CudaGreeting& greeting,
                       std::vector<ncclUniqueId>& ids) {
  if (!nccl.ok()) return nccl.error();
  const auto make = [&nccl](ncclUniqueId& to) -> Result<void> {
    const Result<ncclUniqueId> id = make_nccl_id(*nccl);
    if (!id.ok()) return id.error();
    to = *id;
    return {};
  };
  Result<void> done = describe_device(settings.device, greeting);
  if (done.ok() && settings.grid.lanes > 1 && settings.grid.place(peers.endpoint).lane == 0) {
    done = make(greeting.lanes);
  }
  for (std::size_t i = 0; i < ids.size() && done.ok(); ++i) {
    if (peers.channels[i].first == peers.endpoint) done = make(ids[i]);
  }
  return done;
}

Result<void> check_gpus(const std::vector<CudaGreeting>& greetings) {
  std::map<std::string, std::size_t> at;
  for (std::size_t process = 0; process < greetings.size(); ++process) {
    const CudaGreeting& of = greetings[process];
    const auto [found, is_new] = at.emplace(std::string(of.host) + " " + of.gpu, process);
    if (is_new) continue;
    return Error{"processes " + std::to_string(found->second) + " and " + std::to_string(process) +
                 " both have GPU " + of.gpu + " of host " + of.host +
                 ", and NCCL wants one for each; start no more processes on a host than it has "
                 "GPUs, or run one process, whose ranks then share one GPU"};
  }
  return {};
}

}  // namespace

Result<CudaMeeting> meet(const CudaSettings& settings, const CudaPeers& peers,
                         const Result<CudaNcclFunctions>& nccl) {
  CudaGreeting greeting;
  std::vector<ncclUniqueId> mine(peers.channels.size());
  const Result<void> able = introduce(settings, peers, nccl, greeting, mine);
  if (Result<void> all_able = agree(*peers.everyone, able); !all_able.ok()) {
    return all_able.error();
  }
  const std::size_t id_bytes = mine.size() * sizeof(ncclUniqueId);
  Payload said(sizeof(greeting) + id_bytes);
  std::memcpy(said.data(), &greeting, sizeof(greeting));
  if (id_bytes > 0) std::memcpy(said.data() + sizeof(greeting), mine.data(), id_bytes);
  const Result<std::vector<Payload>> all = peers.everyone->exchange(std::move(said));
  if (!all.ok()) return all.error();

  CudaMeeting meeting;
  for (const Payload& one : *all) {
    if (one.size() != sizeof(greeting) + id_bytes) {
      return Error{"the processes were not started with the same file and options"};
    }
    std::memcpy(&meeting.greetings.emplace_back(), one.data(), sizeof(greeting));
  }
  for (std::size_t i = 0; i < peers.channels.size(); ++i) {
    const Payload& sender = (*all)[static_cast<std::size_t>(peers.channels[i].first)];
    std::memcpy(&meeting.channel_ids.emplace_back(),
                sender.data() + sizeof(greeting) + i * sizeof(ncclUniqueId), sizeof(ncclUniqueId));
  }
  if (Result<void> fine = check_gpus(meeting.greetings); !fine.ok()) return fine.error();
  return meeting;
}

}  // namespace rrfp
