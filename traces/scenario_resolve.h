// From a scenario to cases: one for each policy, iteration and replica.
//
// Invariants
//  1. Common random numbers: what is drawn depends on (seed, iteration,
//     replica, which model, which element) and on nothing else. All policies
//     meet the same world, and one case can be drawn again alone.
//  2. Same scenario, same cases, on every machine (deterministic_math.h).
//  3. A lognormal factor has mean 1. variability_draws.h says how models add up
//     and what schedulers expect of them.
//  4. A launch-queue run's message_ns, where the scenario gives none, is
//     mean_transfer_ns (transfer.h) of its world: what is expected, not drawn.
//
// Thread safety: immutable after create(); share freely.
#pragma once

#include <cstdint>

#include "scheduler_core/result.h"
#include "traces/case.h"
#include "traces/scenario.h"
#include "traces/variability_draws.h"

namespace rrfp {

class ScenarioResolver {
 public:
  /// The error names a budget or table that does not fit the pipeline.
  static Result<ScenarioResolver> create(Scenario scenario);

  const Scenario& scenario() const { return scenario_; }
  const Program& program() const { return program_; }

  /// The world that all policies of this iteration and replica meet: a case
  /// without a policy and without budgets. REQUIRES: both are in range.
  Case draw_world(int iteration, int replica) const;

  /// Sets what `policy` (an index) chooses: the policy, the budgets, the
  /// network mode, and the name. The error is that of check_magnitudes.
  Result<void> apply(int policy, Case& world) const;

  /// Both of the above.
  Result<Case> resolve(int policy, int iteration, int replica) const;

  NetworkMode mode_of(int policy) const;

  /// Whether apply() takes message_ns from the mean transfer: the policy runs
  /// launch-queue and the scenario does not say how long its messages take.
  bool derives_message_ns(int policy) const;

  /// By rank; empty: no limits.
  std::vector<std::optional<std::int64_t>> budget_bytes(int policy) const;

 private:
  ScenarioResolver(Scenario scenario, Program program);

  Scenario scenario_;
  Program program_;
  VariabilityDraws draws_;
  Case base_;  ///< what no iteration changes
};

}  // namespace rrfp
