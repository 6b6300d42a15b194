// A scenario: what a person writes to compare policies. Where a case spells
// out one replica of one iteration, a scenario gives shapes, means and models
// of what varies, and a list of policies that all meet the same draws.
//
// Everything is in base units (ns, bytes, bytes per second) and every default
// is explicit. Thread safety: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler_core/policy.h"
#include "scheduler_core/program.h"
#include "traces/case.h"
#include "traces/quantity.h"
#include "traces/variability.h"

namespace rrfp {

/// How much memory a rank may use.
struct Budget {
  /// In bytes, by rank, null: no limit; or in activations, by rank; or the
  /// peak of a schedule, by its name. All empty: no limits.
  std::vector<std::optional<std::int64_t>> bytes;
  std::vector<std::int64_t> activations;
  std::string like;

  friend bool operator==(const Budget&, const Budget&) = default;
};

struct ScenarioNetwork {
  NetworkMode mode = NetworkMode::kEager;
  std::int64_t bytes_per_second = 0;
  std::int64_t latency_ns = 0;
  std::int64_t notice_ns = 0;
  StageTable activation_bytes;             ///< of the message that a stage sends forward
  StageTable gradient_bytes;               ///< of the message that a stage sends back
  std::optional<std::int64_t> message_ns;  ///< launch-queue; empty: the mean transfer
  std::vector<LinkDelay> link_delays;

  friend bool operator==(const ScenarioNetwork&, const ScenarioNetwork&) = default;
};

struct DataParallel {
  int replicas = 1;
  StageTable gradient_sync_ns;  ///< by stage
  std::int64_t optimizer_ns = 0;

  friend bool operator==(const DataParallel&, const DataParallel&) = default;
};

struct ScenarioMemory {
  StageTable activation_bytes{StageTable::Shape::kUniform, {1}, 0};
  /// Of the activation, kept from I to W: one for all stages, or one per stage.
  std::vector<double> weight_stash_fraction = {1};
  Budget budget;

  double stash_fraction_of(int stage) const {
    const bool uniform = weight_stash_fraction.size() == 1;
    return weight_stash_fraction[uniform ? 0 : static_cast<std::size_t>(stage)];
  }

  friend bool operator==(const ScenarioMemory&, const ScenarioMemory&) = default;
};

struct ScenarioPolicy {
  std::string name;
  Policy policy;
  std::optional<Budget> budget;     ///< instead of the scenario's
  std::optional<NetworkMode> mode;  ///< instead of the scenario's
};

struct Scenario {
  std::string name;
  std::uint64_t seed = 0;
  int iterations = 1;
  /// From the beginning of one iteration to that of the next, for what varies in
  /// time; empty: nominal iterations back to back (time_axis.h).
  std::optional<std::int64_t> iteration_spacing_ns;
  ProgramSpec pipeline;
  StageTable forward_ns;
  StageTable backward_ns;  ///< the whole backward, or its input gradient where split
  StageTable weight_ns;    ///< where split
  std::vector<std::int64_t> input_ready_ns;  ///< by microbatch; empty: 0
  std::int64_t dispatch_ns = 0;
  int queue_depth = 1;
  TensorParallel tensor_parallel;
  DataParallel data_parallel;
  ScenarioNetwork network;
  ScenarioMemory memory;
  std::vector<VariabilityModel> variability;
  std::vector<ScenarioPolicy> policies;
  int baseline = 0;  ///< index of a policy
};

}  // namespace rrfp
