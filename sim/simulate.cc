#include "sim/simulate.h"

#include "sim/eager_engine.h"
#include "sim/rendezvous_engine.h"
#include "sim/simulate_launch_queue.h"

namespace rrfp {

namespace {

Result<void> check_window(const Case& input) {
  if (input.network.mode == NetworkMode::kEager || input.policy.window == 1) return {};
  const std::string mode =
      input.network.mode == NetworkMode::kRendezvous ? "rendezvous" : "launch-queue";
  return Error{
      "network mode \"" + mode +
      "\" runs a pre-committed order: the policy's window must be 1, found " +
      (input.policy.window == kNoWindow ? "no window" : std::to_string(input.policy.window))};
}

}  // namespace

Result<SimulationResult> simulate(const Case& input, const SimulateOptions& options) {
  // Told first: whoever asks for the wrong mode hears of that.
  if (Result<void> checked = check_window(input); !checked.ok()) return checked.error();
  Result<std::unique_ptr<const PreparedCase>> prepared = PreparedCase::create(input);
  if (!prepared.ok()) return prepared.error();
  return simulate(**prepared, options);
}

Result<SimulationResult> simulate(const PreparedCase& prepared, const SimulateOptions& options) {
  const Case& input = prepared.input();
  if (Result<void> checked = check_window(input); !checked.ok()) return checked.error();
  if (input.network.mode == NetworkMode::kRendezvous) {
    SimulationResult result = RendezvousEngine(prepared).run();
    if (!options.messages) result.messages.clear();
    if (!options.idle_causes) {
      for (RankResult& rank : result.ranks) rank.idle_ns = {};
    }
    return result;
  }
  if (input.network.mode == NetworkMode::kLaunchQueue) {
    return simulate_launch_queue(prepared, options);
  }
  EagerEngine engine(prepared, {true, options.idle_causes, options.messages});
  engine.run();
  return engine.result();
}

}  // namespace rrfp
