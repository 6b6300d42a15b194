// What each message of a case takes, looked up by
// [EdgeId * microbatches + microbatch].
//
// Policies of one world differ in little that messages know of, so their cases
// share one object. Thread safety: immutable once built.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/case.h"

namespace rrfp {

struct MessageTables {
  std::vector<std::int64_t> bytes;
  /// How long a message keeps its link busy.
  std::vector<std::int64_t> busy_ns;
  /// From the end of the transmission to the arrival for the group.
  std::vector<std::int64_t> group_latency_ns;
  /// The same to the last lane, without votes.
  std::vector<std::int64_t> slowest_latency_ns;
  /// From a finish to the arrival, as schedulers expect it.
  std::vector<std::int64_t> expected_transfer_ns;
};

MessageTables build_message_tables(const Case& input);

/// Whether both cases have the same tables.
bool same_messages(const Case& a, const Case& b);

/// Latency of one lane. REQUIRES: 0 <= lane < lanes.
std::int64_t lane_latency_ns(const Case& input, EdgeId edge, int lane, int microbatch);

/// What a vote adds; nothing with one lane, without votes, or where messages
/// are not eager.
std::int64_t vote_ns(const Case& input);

/// Whether messages are there for the group once its leader has them.
bool leader_decides_alone(const Case& input);

}  // namespace rrfp
