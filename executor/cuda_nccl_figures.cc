#include "executor/cuda_nccl_figures.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "executor/cuda_figures.h"

namespace rrfp {

namespace {

static_assert(std::is_trivially_copyable_v<LinkFigures>);

using FailureText = std::array<char, 512>;

// This process's end; null where it has none.
CudaNcclChannel* own_end(const CudaNcclConnections& connections, int endpoint,
                         const std::pair<int, int>& channel) {
  if (channel.first == endpoint) return connections.to(channel.second);
  return channel.second == endpoint ? connections.from(channel.first) : nullptr;
}

}  // namespace

Result<std::vector<LinkFigures>> measure_channels(const CudaNcclConnections& connections,
                                                  const CudaPeers& peers,
                                                  std::size_t message_bytes) {
  const std::size_t large = large_message(message_bytes);
  std::vector<LinkFigures> links;
  for (const auto& channel : peers.channels) {
    CudaNcclChannel* const end = own_end(connections, peers.endpoint, channel);
    if (end == nullptr) continue;
    const Result<double> small_ns = end->measure_ns(connections.partition(), kSmallMessage);
    if (!small_ns.ok()) return small_ns.error();
    const Result<double> large_ns = end->measure_ns(connections.partition(), large);
    if (!large_ns.ok()) return large_ns.error();
    if (!end->sends()) links.push_back(fit_link(channel, *small_ns, large, *large_ns));
  }
  return links;
}

// What a process says: why it could not, and a place for each channel, of which it fills its own.
Result<std::vector<LinkFigures>> gather_links(const CudaPeers& peers,
                                              const Result<std::vector<LinkFigures>>& mine) {
  FailureText failure{};
  std::vector<LinkFigures> links(peers.channels.size());
  if (!mine.ok()) {
    const std::string& text = mine.error().message;
    std::memcpy(failure.data(), text.data(), std::min(failure.size() - 1, text.size()));
  } else {
    for (const LinkFigures& link : *mine) {
      const auto at =
          std::find(peers.channels.begin(), peers.channels.end(), std::pair(link.from, link.to));
      links[static_cast<std::size_t>(at - peers.channels.begin())] = link;
    }
  }
  const std::size_t link_bytes = links.size() * sizeof(LinkFigures);
  Payload said(failure.size() + link_bytes);
  std::memcpy(said.data(), failure.data(), failure.size());
  if (link_bytes > 0) std::memcpy(said.data() + failure.size(), links.data(), link_bytes);
  const Result<std::vector<Payload>> all = peers.everyone->exchange(std::move(said));
  if (!all.ok()) return all.error();
  for (const Payload& one : *all) {
    std::memcpy(failure.data(), one.data(), failure.size());
    if (failure.front() != '\0') return Error{failure.data()};
  }
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Payload& receiver = (*all)[static_cast<std::size_t>(peers.channels[i].second)];
    std::memcpy(&links[i], receiver.data() + failure.size() + i * sizeof(LinkFigures),
                sizeof(LinkFigures));
  }
  return links;
}

}  // namespace rrfp
