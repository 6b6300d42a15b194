#include "executor/cuda_nccl_connections.h"

#include <algorithm>

#include "executor/cuda_error.h"
#include "executor/cuda_nccl_figures.h"
#include "executor/cuda_nccl_meeting.h"
#include "executor/cuda_nccl_transport.h"

namespace rrfp {

namespace {

// Making a communicator takes seconds where many are made at a time.
constexpr std::int64_t kConnectNs = 60'000'000'000;

// The all-gather of a group of lanes, in the compute stream of each: lanes start the same tasks in
// the same order, so they also come to their sums in one order.
class NcclGather final : public CudaLaneGather {
 public:
  NcclGather(std::shared_ptr<CudaConnections> kept, CudaNcclCommunicator& lanes,
             std::int64_t patience_ns)
      : kept_(std::move(kept)), lanes_(lanes), patience_ns_(patience_ns) {}

  bool waits_in_stream() const override { return true; }
  Result<void> gather(CudaCompute& compute, const CudaMatrix& part, float* all) override {
    Result<void> issued = lanes_.all_gather(part.data, all, part.bytes(), compute.stream());
    // What is enqueued next must not come before it.
    if (issued.ok()) issued = lanes_.wait_until_ready(patience_ns_);
    return issued;
  }

 private:
  const std::shared_ptr<CudaConnections> kept_;
  CudaNcclCommunicator& lanes_;
  const std::int64_t patience_ns_;
};

}  // namespace

std::string channel_name(const Grid& grid, int from, int to) {
  const Place of = grid.place(from);
  std::string name =
      "channel rank " + std::to_string(of.rank) + " -> rank " + std::to_string(grid.place(to).rank);
  if (grid.lanes > 1) name += ", lane " + std::to_string(of.lane);
  if (grid.replicas > 1) name += ", replica " + std::to_string(of.replica);
  return name;
}

Result<std::shared_ptr<CudaConnections>> connect_cuda(
    const CudaSettings& settings, const CudaPeers& peers,
    std::shared_ptr<CudaDevicePartitions> partitions) {
  Result<std::shared_ptr<CudaNcclConnections>> made =
      CudaNcclConnections::connect(settings, peers, std::move(partitions));
  if (!made.ok()) return made.error();
  return std::shared_ptr<CudaConnections>(std::move(*made));
}

Result<std::shared_ptr<CudaNcclConnections>> CudaNcclConnections::connect(
    const CudaSettings& settings, const CudaPeers& peers,
    std::shared_ptr<CudaDevicePartitions> partitions) {
  Result<void> chosen =
      check_cuda("cudaSetDevice", cudaSetDevice(partitions->partition(0).device()));
  if (!chosen.ok()) return chosen.error();
  const Result<CudaNcclFunctions> nccl = load_cuda_nccl();
  const Result<CudaMeeting> meeting = meet(settings, peers, nccl);
  if (!meeting.ok()) return meeting.error();
  std::shared_ptr<CudaNcclConnections> made(
      new CudaNcclConnections(settings, std::move(partitions)));
  int version = 0;
  nccl->version(&version);
  made->version_ = nccl_version_text(version);
  Result<void> opened = made->open_channels(*nccl, peers, meeting->channel_ids);
  if (opened.ok() && settings.grid.lanes > 1) {
    const Place place = settings.grid.place(peers.endpoint);
    const int first = settings.grid.endpoint({place.replica, place.rank, 0});
    opened =
        made->open_lanes(*nccl, peers, meeting->greetings[static_cast<std::size_t>(first)].lanes);
  }
  if (opened.ok()) return made;
  made->abort();
  return opened.error();
}

Result<void> CudaNcclConnections::open_channels(const CudaNcclFunctions& nccl,
                                                const CudaPeers& peers,
                                                const std::vector<ncclUniqueId>& ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto [from, to] = peers.channels[i];
    const bool sends = from == peers.endpoint;
    if (!sends && to != peers.endpoint) continue;
    Result<std::unique_ptr<CudaNcclChannel>> channel = CudaNcclChannel::open(
        nccl, ids[i], sends ? CudaNcclChannel::End::kSends : CudaNcclChannel::End::kReceives,
        partition().blocks(), channel_name(settings_.grid, from, to),
        std::max(kConnectNs, patience_ns()), patience_ns());
    if (!channel.ok()) return channel.error();
    (sends ? to_ : from_)[sends ? to : from] = channel->get();
    channels_.push_back(std::move(*channel));
  }
  return {};
}

Result<void> CudaNcclConnections::open_lanes(const CudaNcclFunctions& nccl, const CudaPeers& peers,
                                             const ncclUniqueId& id) {
  const int lanes = settings_.grid.lanes;
  const std::int64_t connect_ns = std::max(kConnectNs, patience_ns());
  const auto named = [&](const Error& error) {
    return Error{"the lanes of rank " + std::to_string(settings_.grid.place(peers.endpoint).rank) +
                 ": " + error.message};
  };
  Result<std::unique_ptr<CudaNcclCommunicator>> made = CudaNcclCommunicator::create(
      nccl, id, lanes, settings_.grid.place(peers.endpoint).lane, connect_ns);
  if (!made.ok()) return named(made.error());
  lanes_ = std::move(*made);
  const Result<CudaMemory> bytes =
      CudaMemory::create(static_cast<std::size_t>(lanes + 1), "the first of the lanes' sums");
  if (!bytes.ok()) return bytes.error();
  const cudaStream_t stream = partition().compute();
  Result<void> gathered = lanes_->all_gather(bytes->data(), bytes->data() + 1, 1, stream);
  if (gathered.ok()) gathered = lanes_->wait_until_ready(connect_ns);
  if (!gathered.ok()) return named(gathered.error());
  // All lanes have connected, so this ends; or the job does, by mpirun or by a lost connection.
  return check_cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream));
}

Result<std::vector<LinkFigures>> CudaNcclConnections::measure(const CudaPeers& peers,
                                                              std::size_t message_bytes,
                                                              const Result<DeviceTimes>& before) {
  return gather_links(peers, before.ok() ? measure_channels(*this, peers, message_bytes)
                                         : Result<std::vector<LinkFigures>>(before.error()));
}

// A channel by itself could not be given back while another one's transfer waits for its peer.
CudaNcclConnections::~CudaNcclConnections() {
  if (!idle()) abort();
}

bool CudaNcclConnections::idle() const {
  return std::all_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel->idle(); });
}

void CudaNcclConnections::abort() {
  std::vector<CudaNcclCommunicator*> all = {lanes_.get()};
  for (const auto& channel : channels_) all.push_back(&channel->communicator());
  CudaNcclCommunicator::abort_together(all);
}

std::unique_ptr<Transport> CudaNcclConnections::transport(
    const std::shared_ptr<CudaConnections>& self, Transport& control) {
  return std::make_unique<CudaNcclTransport>(std::static_pointer_cast<CudaNcclConnections>(self),
                                             control);
}

std::unique_ptr<CudaLaneGather> CudaNcclConnections::lane_gather(
    const std::shared_ptr<CudaConnections>& self) {
  return std::make_unique<NcclGather>(self, *lanes_, patience_ns());
}

}  // namespace rrfp
