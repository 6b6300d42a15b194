#include "traces/transfer.h"

#include <algorithm>

namespace rrfp {

namespace {

__extension__ using Wide = __int128;

std::int64_t expected_latency_ns(const Case& given, EdgeId edge, int microbatch) {
  const Network& network = given.network;
  const auto id = static_cast<std::size_t>(edge);
  if (!network.expected_latency_ns.empty() && !network.expected_latency_ns[id].empty()) {
    return network.expected_latency_ns[id][static_cast<std::size_t>(microbatch)];
  }
  if (network.latency_ns.empty()) return 0;
  const auto width = static_cast<std::size_t>(given.program.microbatches());
  std::int64_t slowest = 0;
  for (std::size_t at = static_cast<std::size_t>(microbatch); at < network.latency_ns[id].size();
       at += width) {
    slowest = std::max(slowest, network.latency_ns[id][at]);
  }
  return slowest;
}

}  // namespace

std::int64_t transmission_ns(std::int64_t bytes, std::int64_t bytes_per_second) {
  if (bytes_per_second == 0) return 0;
  return static_cast<std::int64_t>((Wide{bytes} * 1'000'000'000 + bytes_per_second - 1) /
                                   bytes_per_second);
}

std::int64_t mean_transfer_ns(const Case& given) {
  const Program& program = given.program;
  Wide sum_ns = 0;
  Wide messages = 0;
  for (std::size_t id = 0; id < program.edges().size(); ++id) {
    const Edge& edge = program.edges()[id];
    if (!edge.crosses()) continue;
    const Slot slot = edge.slot();
    for (int m = 0; m < program.microbatches(); ++m) {
      if (!given.network.message_bytes.empty()) {
        const auto producer = static_cast<std::size_t>(program.task_id(edge.from, slot, m));
        sum_ns +=
            transmission_ns(given.network.message_bytes[producer], given.network.bytes_per_second);
      }
      sum_ns += expected_latency_ns(given, static_cast<EdgeId>(id), m);
      ++messages;
    }
  }
  return messages == 0 ? 0 : static_cast<std::int64_t>((sum_ns + messages / 2) / messages);
}

}  // namespace rrfp
