// A case: one replica of one iteration with everything explicit. What a
// simulator needs and nothing else; scenarios and traces resolve to it.
//
// Arrays are flat. M is the number of microbatches.
//   by TaskId         [(stage * kSlots + slot) * M + microbatch]
//   by stage          [stage * M + microbatch]
//   by message        per EdgeId: [lane * M + microbatch]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler_core/policy.h"
#include "scheduler_core/program.h"

namespace rrfp {

enum class NetworkMode : std::uint8_t { kEager, kRendezvous, kLaunchQueue };
enum class Coordination : std::uint8_t { kVote, kLeader };

struct TensorParallel {
  int lanes = 1;
  Coordination coordination = Coordination::kVote;
  std::int64_t vote_ns = 0;
  std::int64_t announce_ns = 0;

  friend bool operator==(const TensorParallel&, const TensorParallel&) = default;
};

/// The injected delay of one directed link in launch-queue mode.
struct LinkDelay {
  int from_rank = 0;
  int to_rank = 0;
  std::int64_t ns = 0;

  friend bool operator==(const LinkDelay&, const LinkDelay&) = default;
};

struct Network {
  NetworkMode mode = NetworkMode::kEager;
  std::int64_t bytes_per_second = 0;  ///< 0: transmission takes no time
  std::int64_t notice_ns = 0;
  /// Sent by stage, in its slot kForward (activation) or kBackward
  /// (gradient): by TaskId; empty: no bytes.
  std::vector<std::int64_t> message_bytes;
  /// By EdgeId: [lane * M + microbatch]; an empty inner vector: 0.
  std::vector<std::vector<std::int64_t>> latency_ns;
  /// By EdgeId: [microbatch]; an empty inner vector: the real latency as the
  /// group sees it.
  std::vector<std::vector<std::int64_t>> expected_latency_ns;
  std::int64_t message_ns = 0;         ///< launch-queue only
  std::vector<LinkDelay> link_delays;  ///< launch-queue only

  friend bool operator==(const Network&, const Network&) = default;
};

struct Memory {
  std::vector<std::int64_t> activation_bytes;             ///< by stage; empty: 0
  std::vector<std::int64_t> weight_stash_bytes;           ///< by stage; empty: activation_bytes
  std::vector<std::optional<std::int64_t>> budget_bytes;  ///< by rank; empty: no limits

  friend bool operator==(const Memory&, const Memory&) = default;
};

struct Case {
  std::string name;
  Program program;
  std::vector<std::int64_t> duration_ns{};     ///< by TaskId; a fused B is I + W
  std::vector<std::int64_t> expected_ns{};     ///< by TaskId; empty: the durations
  std::vector<std::int64_t> input_ready_ns{};  ///< [microbatch]; empty: 0
  std::int64_t dispatch_ns = 0;
  int queue_depth = 1;
  TensorParallel tensor_parallel{};
  Network network{};
  Memory memory{};
  Policy policy{};
};

}  // namespace rrfp
