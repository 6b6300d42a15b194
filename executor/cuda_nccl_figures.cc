#include "executor/cuda_nccl_figures.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "executor/cuda_figures.h"

namespace rrfp {

namespace {

static_assert(std::is_trivially_copyable_v<LinkFigures>);

// This process's end; null where it has none.
CudaNcclChannel* own_end(const CudaNcclConnections& connections, int endpoint,
                         const std::pair<int, int>& channel) {
  if (channel.first == endpoint) return connections.to(channel.second);
  return channel.second == endpoint ? connections.from(channel.first) : nullptr;
}

}  // namespace

Result<std::vector<LinkFigures>> measure_channels(const CudaNcclConnections& connections,
                                                  const CudaPeers& peers, std::size_t message_bytes,
                                                  CudaPeerWait& wait) {
  const std::size_t large = large_message(message_bytes);
  std::vector<LinkFigures> links;
  for (const auto& channel : peers.channels) {
    CudaNcclChannel* const end = own_end(connections, peers.endpoint, channel);
    if (end == nullptr) continue;
    wait.begin(end->name());
    const Result<double> small_ns = end->measure_ns(connections.partition(), kSmallMessage, wait);
    if (!small_ns.ok()) return small_ns.error();
    const Result<double> large_ns = end->measure_ns(connections.partition(), large, wait);
    if (!large_ns.ok()) return large_ns.error();
    if (!end->sends()) links.push_back(fit_link(channel, *small_ns, large, *large_ns));
  }
  return links;
}

// Each says a place for every channel, of which it fills those that it receives on.
Result<std::vector<LinkFigures>> gather_links(const CudaPeers& peers, CudaPeerWait& wait,
                                              const Result<std::vector<LinkFigures>>& mine) {
  const Result<void> measured = mine.ok() ? Result<void>() : mine.error();
  if (Result<void> all_have = wait.agree(measured); !all_have.ok()) {
    return all_have.error();
  }
  std::vector<LinkFigures> links(peers.channels.size());
  for (const LinkFigures& link : *mine) {
    const auto at =
        std::find(peers.channels.begin(), peers.channels.end(), std::pair(link.from, link.to));
    links[static_cast<std::size_t>(at - peers.channels.begin())] = link;
  }
  Payload said(links.size() * sizeof(LinkFigures));
  if (!said.empty()) std::memcpy(said.data(), links.data(), said.size());
  const Result<std::vector<Payload>> all = peers.everyone->exchange(std::move(said));
  if (!all.ok()) return wait.not_all(all.error());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Payload& receiver = (*all)[static_cast<std::size_t>(peers.channels[i].second)];
    std::memcpy(&links[i], receiver.data() + i * sizeof(LinkFigures), sizeof(LinkFigures));
  }
  return links;
}

}  // namespace rrfp
