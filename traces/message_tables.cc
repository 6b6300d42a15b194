#include "traces/message_tables.h"

#include <algorithm>

#include "traces/transfer.h"

namespace rrfp {

std::int64_t lane_latency_ns(const Case& input, EdgeId edge, int lane, int microbatch) {
  if (input.network.latency_ns.empty()) return 0;
  const std::vector<std::int64_t>& table = input.network.latency_ns[static_cast<std::size_t>(edge)];
  if (table.empty()) return 0;
  return table[static_cast<std::size_t>(lane * input.program.microbatches() + microbatch)];
}

std::int64_t vote_ns(const Case& input) {
  const TensorParallel& group = input.tensor_parallel;
  const bool votes = group.lanes > 1 && group.coordination == Coordination::kVote &&
                     input.network.mode == NetworkMode::kEager;
  return votes ? group.vote_ns : 0;
}

bool leader_decides_alone(const Case& input) {
  return input.tensor_parallel.lanes > 1 &&
         input.tensor_parallel.coordination == Coordination::kLeader;
}

MessageTables build_message_tables(const Case& input) {
  const Network& network = input.network;
  const Program& program = input.program;
  const int width = program.microbatches();
  const std::int64_t vote = vote_ns(input);
  const bool alone = leader_decides_alone(input);
  MessageTables tables;
  for (std::size_t id = 0; id < program.edges().size(); ++id) {
    const Edge& edge = program.edges()[id];
    const bool known =
        !network.expected_latency_ns.empty() && !network.expected_latency_ns[id].empty();
    for (int m = 0; m < width; ++m) {
      const auto producer = static_cast<std::size_t>(program.task_id(edge.from, edge.slot(), m));
      const std::int64_t bytes =
          network.message_bytes.empty() ? 0 : network.message_bytes[producer];
      const std::int64_t busy = transmission_ns(bytes, network.bytes_per_second);
      std::int64_t slowest = 0;
      std::int64_t of_group = 0;
      for (int lane = 0; lane < input.tensor_parallel.lanes; ++lane) {
        const std::int64_t latency = lane_latency_ns(input, static_cast<EdgeId>(id), lane, m);
        slowest = std::max(slowest, latency);
        if (lane > 0 && alone) continue;
        of_group = std::max(of_group, latency + (lane > 0 ? vote : 0));
      }
      tables.bytes.push_back(bytes);
      tables.busy_ns.push_back(busy);
      tables.slowest_latency_ns.push_back(slowest);
      tables.group_latency_ns.push_back(of_group);
      tables.expected_transfer_ns.push_back(
          busy + (known ? network.expected_latency_ns[id][static_cast<std::size_t>(m)] : of_group));
    }
  }
  return tables;
}

bool same_messages(const Case& a, const Case& b) {
  const Network& p = a.network;
  const Network& q = b.network;
  return a.program.spec() == b.program.spec() && a.tensor_parallel == b.tensor_parallel &&
         vote_ns(a) == vote_ns(b) && p.bytes_per_second == q.bytes_per_second &&
         p.message_bytes == q.message_bytes && p.latency_ns == q.latency_ns &&
         p.expected_latency_ns == q.expected_latency_ns;
}

}  // namespace rrfp
