// A case made ready for the reference simulator: microbatches arranged, the
// hint resolved to positions, and every default of the case written out, so
// that the simulator itself reads like the rules.
//
// Everything here is deliberately naive and shares nothing with the simulator
// under test beyond the types of a case.
//
// Thread safety: a value; share freely once made.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler_core/program.h"
#include "scheduler_core/result.h"
#include "tests/model/reference_simulator.h"
#include "traces/case.h"

namespace rrfp::model {

/// One thing that must have happened before a task is ready.
struct Dependency {
  enum class What : std::uint8_t {
    kInput,    ///< the root input of the microbatch
    kFinish,   ///< another task of the same stage
    kMessage,  ///< a tensor along an edge
  };
  What what = What::kInput;
  TaskId task = kNoTask;  ///< kFinish
  EdgeId edge = -1;       ///< kMessage
};

/// Microbatches here are positions after arrangement.
struct ReferenceCase {
  Case arranged;                          ///< every per-microbatch array permuted
  std::vector<int> arrangement;           ///< given index at each position
  Program program;                        ///< with fused backwards
  std::vector<std::vector<TaskId>> hint;  ///< [rank][position]

  // By TaskId.
  std::vector<std::int64_t> duration_ns;
  std::vector<std::int64_t> expected_ns;
  std::vector<int> position;
  std::vector<std::vector<Dependency>> dependencies;

  // By stage, [stage * microbatches + microbatch].
  std::vector<std::int64_t> activation_bytes;
  std::vector<std::int64_t> stash_bytes;

  std::int64_t input_ready_ns(int microbatch) const;
  std::optional<std::int64_t> budget_bytes(int rank) const;
  /// The largest activation of a stage: the least that lets it run at all.
  std::int64_t token_bytes(int stage) const;
  /// True where the rule "shares" holds, false for "oldest first".
  bool shares() const;
  std::int64_t message_bytes(EdgeId edge, int microbatch) const;
  /// How long a message keeps its link busy.
  std::int64_t busy_ns(EdgeId edge, int microbatch) const;
  std::int64_t latency_ns(EdgeId edge, int microbatch, int lane) const;
  /// From the end of a transmission until the message has arrived for the
  /// group: until the leader decides on it.
  std::int64_t group_latency_ns(EdgeId edge, int microbatch) const;
  std::int64_t slowest_latency_ns(EdgeId edge, int microbatch) const;
  std::int64_t expected_latency_ns(EdgeId edge, int microbatch) const;
  /// 0 with one lane and in rendezvous mode.
  std::int64_t announce_ns() const;
  /// 1 in rendezvous mode.
  int queue_depth() const;
  bool rendezvous() const { return arranged.network.mode == NetworkMode::kRendezvous; }
};

/// The error of a case that the rules exclude.
Result<ReferenceCase> prepare_case(const Case& given, Mutant mutant = Mutant::kNone);

}  // namespace rrfp::model
