// Bounds every time and every sum of bytes of a case by what is easy to prove,
// not by what is tight: all work, all messages and all waits one after another.
#include <algorithm>
#include <span>

#include "traces/case_file.h"

namespace rrfp {

namespace {

__extension__ using Wide = __int128;

constexpr Wide kMost = Wide{1} << 62;

Wide sum(std::span<const std::int64_t> list) {
  Wide total = 0;
  for (const std::int64_t value : list) total += value;
  return total;
}

Wide largest(std::span<const std::int64_t> list) {
  return list.empty() ? 0 : *std::max_element(list.begin(), list.end());
}

/// All messages of a case, as if they travelled one after another.
struct Traffic {
  Wide messages = 0;
  Wide bytes = 0;
  Wide transmission_ns = 0;
};

Traffic traffic_of(const Case& given) {
  const Network& network = given.network;
  const Program& program = given.program;
  Traffic traffic;
  traffic.messages = static_cast<Wide>(program.edges().size()) * program.microbatches();
  if (network.message_bytes.empty()) return traffic;
  for (const Edge& edge : program.edges()) {
    const Slot slot = edge.slot();
    for (int m = 0; m < program.microbatches(); ++m) {
      const auto id = static_cast<std::size_t>(program.task_id(edge.from, slot, m));
      const Wide bytes = network.message_bytes[id];
      traffic.bytes += bytes;
      if (network.bytes_per_second > 0) {
        traffic.transmission_ns += bytes * 1'000'000'000 / network.bytes_per_second + 1;
      }
    }
  }
  return traffic;
}

Wide sum(const std::vector<std::vector<std::int64_t>>& by_edge) {
  Wide total = 0;
  for (const std::vector<std::int64_t>& list : by_edge) total += sum(std::span(list));
  return total;
}

// Each announced input is waited for at most once.
Wide waits_ns(const Case& given, std::span<const std::int64_t> expected_ns, Wide messages) {
  if (!given.policy.anticipation) return 0;
  const Anticipation& anticipation = *given.policy.anticipation;
  // A fused B is as long as two tasks.
  const Wide product =
      2 * largest(expected_ns) * (Wide{anticipation.reach_permille} + anticipation.grace_permille);
  return messages * (product / 1000 + 1);
}

}  // namespace

Result<void> check_magnitudes(const Case& given) {
  const Program& program = given.program;
  const Network& network = given.network;
  const TensorParallel& group = given.tensor_parallel;
  const std::vector<std::int64_t>& expected_ns =
      given.expected_ns.empty() ? given.duration_ns : given.expected_ns;
  const Traffic traffic = traffic_of(given);
  Wide link_delay_ns = 0;
  for (const LinkDelay& delay : network.link_delays) {
    link_delay_ns = std::max(link_delay_ns, Wide{delay.ns});
  }

  // What is expected adds to the instants that notices name, beyond the run.
  Wide ns = sum(std::span(given.duration_ns)) + sum(std::span(expected_ns));
  ns += largest(std::span(given.input_ready_ns));
  ns += 2 * Wide{program.task_ids()} * (Wide{given.dispatch_ns} + group.announce_ns);
  ns += 2 * (sum(network.latency_ns) + traffic.transmission_ns) + sum(network.expected_latency_ns);
  ns += traffic.messages *
        (Wide{group.vote_ns} + network.notice_ns + network.message_ns + link_delay_ns);
  ns += waits_ns(given, std::span(expected_ns), traffic.messages);
  if (ns > kMost) {
    return Error{
        "durations, latencies and other times are too large together; a run must end within "
        "2^62 ns (146 years) even if nothing overlaps"};
  }
  if (std::max(sum(std::span(given.memory.activation_bytes)), traffic.bytes) > kMost) {
    return Error{
        "activation_bytes or message_bytes are too large together; each may add up to 2^62"};
  }
  return {};
}

}  // namespace rrfp
