#include "executor/cuda_nccl_meeting.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>

#include "executor/agreement.h"
#include "executor/cuda_error.h"
#include "executor/cuda_nccl_communicator.h"
#include "executor/cuda_peer_wait.h"
#include "scheduler_core/random.h"

namespace rrfp {

namespace {

using Channels = std::vector<std::pair<int, int>>;

static_assert(std::is_trivially_copyable_v<CudaGreeting>);

Result<void> describe_device(int device, CudaGreeting& to) {
  gethostname(to.host, sizeof(to.host) - 1);
  boot_id().copy(to.boot, sizeof(to.boot) - 1);
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
  for (ncclUniqueId& id : ids) {
    if (done.ok()) done = make(id);
  }
  return done;
}

std::size_t channels_from(int endpoint, const Channels& channels) {
  return static_cast<std::size_t>(
      std::count_if(channels.begin(), channels.end(),
                    [endpoint](const auto& channel) { return channel.first == endpoint; }));
}

// Of the process with the most. All bring as many bytes, and no more than that needs.
std::size_t most_channels(const Channels& channels, int endpoints) {
  std::vector<std::size_t> from(static_cast<std::size_t>(endpoints));
  for (const auto& channel : channels) ++from[static_cast<std::size_t>(channel.first)];
  return *std::max_element(from.begin(), from.end());
}

std::uint64_t digest_of(const Channels& channels) {
  std::uint64_t digest = channels.size();
  for (const auto& [from, to] : channels) {
    digest =
        random_bits({digest, static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to)});
  }
  return digest;
}

// What each has brought, put in order.
Result<CudaMeeting> read_all(const std::vector<Payload>& all, const Channels& channels,
                             std::uint64_t digest) {
  CudaMeeting meeting;
  for (const Payload& one : all) {
    std::memcpy(&meeting.greetings.emplace_back(), one.data(), sizeof(CudaGreeting));
    if (meeting.greetings.back().channels == digest) continue;
    return Error{"the processes were not started with the same file and options"};
  }
  std::vector<std::size_t> taken(all.size());
  for (const auto& channel : channels) {
    const auto sender = static_cast<std::size_t>(channel.first);
    std::memcpy(&meeting.channel_ids.emplace_back(),
                all[sender].data() + sizeof(CudaGreeting) + taken[sender]++ * sizeof(ncclUniqueId),
                sizeof(ncclUniqueId));
  }
  return meeting;
}

}  // namespace

Result<void> check_gpus(const std::vector<CudaGreeting>& greetings) {
  std::map<std::string, std::size_t> at;
  for (std::size_t process = 0; process < greetings.size(); ++process) {
    const CudaGreeting& of = greetings[process];
    const auto [found, is_new] =
        at.emplace(std::string(of.host) + " " + of.boot + " " + of.gpu, process);
    if (is_new) continue;
    return Error{"processes " + std::to_string(found->second) + " and " + std::to_string(process) +
                 " both have GPU " + of.gpu + " of host " + of.host +
                 ", and NCCL wants one for each; start no more processes on a host than it has "
                 "GPUs, give each a LOCAL_RANK and a --gpu of its own there or neither, or run one "
                 "process, whose ranks then share one GPU"};
  }
  return {};
}

Result<CudaMeeting> meet(const CudaSettings& settings, const CudaPeers& peers,
                         const Result<CudaNcclFunctions>& nccl) {
  CudaGreeting greeting;
  greeting.channels = digest_of(peers.channels);
  std::vector<ncclUniqueId> mine(channels_from(peers.endpoint, peers.channels));
  const Result<void> able = introduce(settings, peers, nccl, greeting, mine);
  CudaPeerWait wait(settings.connect_ns, *peers.everyone, "meeting to connect NCCL", {});
  const Result<std::string> reason = shared_reason(*peers.everyone, able);
  if (!reason.ok()) return able.ok() ? wait.not_all(reason.error()) : able.error();
  if (!reason->empty()) return Error{*reason};
  Payload said(sizeof(greeting) +
               most_channels(peers.channels, settings.grid.size()) * sizeof(ncclUniqueId));
  std::memcpy(said.data(), &greeting, sizeof(greeting));
  if (!mine.empty()) {
    std::memcpy(said.data() + sizeof(greeting), mine.data(), mine.size() * sizeof(ncclUniqueId));
  }
  const Result<std::vector<Payload>> all = peers.everyone->exchange(std::move(said));
  if (!all.ok()) return wait.not_all(all.error());
  Result<CudaMeeting> meeting = read_all(*all, peers.channels, greeting.channels);
  if (!meeting.ok()) return meeting;
  if (Result<void> fine = check_gpus(meeting->greetings); !fine.ok()) return fine.error();
  return meeting;
}

}  // namespace rrfp
