#include "executor/cuda_nccl_connections.h"

#include <algorithm>

#include "executor/cuda_error.h"
#include "executor/cuda_memory.h"
#include "executor/cuda_nccl_figures.h"
#include "executor/cuda_nccl_transport.h"

namespace rrfp {

namespace {

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
    CudaPeerWait wait(patience_ns_);
    return issued.ok() ? lanes_.wait_until_ready(wait) : issued;
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

// What this process cannot do it says where all meet, or the others would wait for it.
Result<std::shared_ptr<CudaNcclConnections>> CudaNcclConnections::connect(
    const CudaSettings& settings, const CudaPeers& peers,
    std::shared_ptr<CudaDevicePartitions> partitions) {
  const Result<void> chosen =
      check_cuda("cudaSetDevice", cudaSetDevice(partitions->partition(0).device()));
  const Result<CudaNcclFunctions> nccl =
      chosen.ok() ? load_cuda_nccl() : Result<CudaNcclFunctions>(chosen.error());
  const Result<CudaMeeting> meeting = meet(settings, peers, nccl);
  if (!meeting.ok()) return meeting.error();
  std::shared_ptr<CudaNcclConnections> made(
      new CudaNcclConnections(settings, std::move(partitions)));
  int version = 0;
  nccl->version(&version);
  made->version_ = nccl_version_text(version);
  // All have met just now, so all give up at the same time.
  CudaPeerWait wait = made->wait_for_all(peers, "connecting NCCL");
  const Result<void> opened = made->open(*nccl, peers, *meeting, wait);
  made->give_up_unless(opened, wait);
  Result<void> all_opened = wait.agree(opened);
  if (all_opened.ok()) return made;
  made->abort();
  return all_opened.error();
}

CudaPeerWait CudaNcclConnections::wait_for_all(const CudaPeers& peers, const char* what) const {
  return CudaPeerWait(std::max(settings_.connect_ns, settings_.patience_ns), *peers.everyone, what,
                      settings_.on_slow);
}

void CudaNcclConnections::give_up_unless(const Result<void>& well, CudaPeerWait& wait) {
  if (well.ok()) return;
  wait.give_up(well.error());
  abort();
}

Result<void> CudaNcclConnections::open(const CudaNcclFunctions& nccl, const CudaPeers& peers,
                                       const CudaMeeting& meeting, CudaPeerWait& wait) {
  Result<void> opened = open_channels(nccl, peers, meeting.channel_ids, wait);
  if (!opened.ok() || settings_.grid.lanes == 1) return opened;
  const Place place = settings_.grid.place(peers.endpoint);
  const std::string name = "the lanes of rank " + std::to_string(place.rank);
  const int first = settings_.grid.endpoint({place.replica, place.rank, 0});
  wait.begin(name);
  opened = open_lanes(nccl, peers, meeting.greetings[static_cast<std::size_t>(first)].lanes, wait);
  if (opened.ok()) opened = warm_up_lanes(wait);
  if (opened.ok()) return {};
  return Error{name + " cannot be connected: " + opened.error().message};
}

Result<void> CudaNcclConnections::open_channels(const CudaNcclFunctions& nccl,
                                                const CudaPeers& peers,
                                                const std::vector<ncclUniqueId>& ids,
                                                CudaPeerWait& wait) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto [from, to] = peers.channels[i];
    const bool sends = from == peers.endpoint;
    if (!sends && to != peers.endpoint) continue;
    const std::string name = channel_name(settings_.grid, from, to);
    wait.begin(name);
    Result<std::unique_ptr<CudaNcclChannel>> channel = CudaNcclChannel::open(
        nccl, ids[i], sends ? CudaNcclChannel::End::kSends : CudaNcclChannel::End::kReceives,
        partition().blocks(), {name, settings_.name_of_task, patience_ns()}, wait);
    if (!channel.ok()) return channel.error();
    (sends ? to_ : from_)[sends ? to : from] = channel->get();
    channels_.push_back(std::move(*channel));
  }
  return {};
}

Result<void> CudaNcclConnections::open_lanes(const CudaNcclFunctions& nccl, const CudaPeers& peers,
                                             const ncclUniqueId& id, CudaPeerWait& wait) {
  Result<std::unique_ptr<CudaNcclCommunicator>> made = CudaNcclCommunicator::create(
      nccl, id, settings_.grid.lanes, settings_.grid.place(peers.endpoint).lane,
      CudaNcclCommunicator::kAnyBlocks, wait);
  if (!made.ok()) return made.error();
  lanes_ = std::move(*made);
  return {};
}

// By its size NCCL chooses how a sum is carried, and each way connects at its first use.
Result<void> CudaNcclConnections::warm_up_lanes(CudaPeerWait& wait) {
  constexpr std::size_t kStep = 16;
  const auto lanes = static_cast<std::size_t>(settings_.grid.lanes);
  const std::size_t largest = std::max<std::size_t>(settings_.largest_part_bytes, 1);
  const Result<CudaMemory> memory =
      CudaMemory::create((lanes + 1) * largest, "the first of the lanes' sums");
  if (!memory.ok()) return memory.error();
  Result<void> done;
  for (std::size_t bytes = 1; done.ok(); bytes = std::min(bytes * kStep, largest)) {
    done =
        lanes_->all_gather(memory->data(), memory->data() + largest, bytes, partition().compute());
    if (done.ok()) done = lanes_->wait_until_done(partition().compute_marks(), wait);
    if (bytes == largest) break;
  }
  if (!done.ok()) {
    abort();  // what waits in the stream uses the memory
    cudaStreamSynchronize(partition().compute());
  }
  return done;
}

Result<std::vector<LinkFigures>> CudaNcclConnections::measure(const CudaPeers& peers,
                                                              std::size_t message_bytes,
                                                              const Result<DeviceTimes>& before) {
  CudaPeerWait wait = wait_for_all(peers, "measuring the channels of NCCL");
  const Result<std::vector<LinkFigures>> mine =
      before.ok() ? measure_channels(*this, peers, message_bytes, wait)
                  : Result<std::vector<LinkFigures>>(before.error());
  give_up_unless(mine.ok() ? Result<void>() : mine.error(), wait);
  Result<std::vector<LinkFigures>> all = gather_links(peers, wait, mine);
  if (!all.ok()) abort();
  return all;
}

int CudaNcclConnections::sms() const {
  return static_cast<int>(channels_.size()) * CudaNcclChannel::kMostBlocks;
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
  static_cast<void>(CudaNcclCommunicator::abort_together(all));
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
