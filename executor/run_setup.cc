#include "executor/run_setup.h"

namespace rrfp {

namespace {

// Owns what a plan points into.
struct OwningPlan final : RunPlan {
  std::vector<std::unique_ptr<const PreparedCase>> owned;
};

Result<void> check_runnable(const Case& input) {
  if (input.network.mode == NetworkMode::kLaunchQueue) {
    return Error{
        "network mode \"launch-queue\" is simulated only; a run takes \"eager\" or "
        "\"rendezvous\""};
  }
  if (input.network.mode == NetworkMode::kRendezvous && input.policy.window != 1) {
    return Error{
        "network mode \"rendezvous\" runs a pre-committed order: the policy's window "
        "must be 1"};
  }
  return {};
}

Result<void> add(OwningPlan& plan, const Case& input) {
  if (Result<void> checked = check_runnable(input); !checked.ok()) return checked;
  Result<std::unique_ptr<const PreparedCase>> prepared = PreparedCase::create(input);
  if (!prepared.ok()) return prepared.error();
  plan.grid.ranks = input.program.ranks();
  plan.grid.lanes = input.tensor_parallel.lanes;
  plan.worlds.back().push_back(prepared->get());
  plan.owned.push_back(std::move(*prepared));
  return {};
}

}  // namespace

Result<PreparedRun> prepare_run(const Case& input, int iterations, int replicas) {
  auto plan = std::make_shared<OwningPlan>();
  plan->grid.replicas = replicas;
  PreparedRun run;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    if (iteration > 0) {  // the same world again
      plan->worlds.push_back(plan->worlds.front());
      run.cases.push_back(run.cases.front());
      continue;
    }
    plan->worlds.emplace_back();
    for (int replica = 0; replica < replicas; ++replica) {
      if (Result<void> added = add(*plan, input); !added.ok()) return added.error();
    }
    run.cases.emplace_back(static_cast<std::size_t>(replicas), input);
  }
  run.plan = std::move(plan);
  return run;
}

Result<PreparedRun> prepare_run(std::vector<std::vector<Case>> cases) {
  auto plan = std::make_shared<OwningPlan>();
  for (const std::vector<Case>& iteration : cases) {
    plan->grid.replicas = static_cast<int>(iteration.size());
    plan->worlds.emplace_back();
    for (const Case& input : iteration) {
      if (Result<void> added = add(*plan, input); !added.ok()) return added.error();
    }
  }
  PreparedRun run;
  run.plan = std::move(plan);
  run.cases = std::move(cases);
  return run;
}

Result<PreparedRun> prepare_run(const ScenarioResolver& resolver, int policy, int iterations) {
  const int replicas = resolver.scenario().data_parallel.replicas;
  std::vector<std::vector<Case>> cases;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    cases.emplace_back();
    for (int replica = 0; replica < replicas; ++replica) {
      Result<Case> input = resolver.resolve(policy, iteration, replica);
      if (!input.ok()) return input.error();
      cases.back().push_back(std::move(*input));
    }
  }
  Result<PreparedRun> run = prepare_run(std::move(cases));
  if (run.ok()) run->plan->end = end_of(resolver);
  return run;
}

IterationEnd end_of(const ScenarioResolver& resolver) {
  const DataParallel& group = resolver.scenario().data_parallel;
  IterationEnd end;
  for (int stage = 0; stage < resolver.program().stages(); ++stage) {
    end.gradient_sync_ns.push_back(group.gradient_sync_ns.at(stage, 0));
  }
  end.optimizer_ns = group.optimizer_ns;
  return end;
}

}  // namespace rrfp
