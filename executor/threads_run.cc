#include "executor/threads_run.h"

#include <sys/prctl.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "executor/core_count.h"

namespace rrfp {

namespace {

// Everything that threads use, kept until the last of them is gone.
struct Team {
  std::shared_ptr<const RunPlan> plan;
  std::shared_ptr<IterationSink> sink;
  std::shared_ptr<std::atomic<bool>> stop;
  std::unique_ptr<ThreadsNetwork> network;
  std::vector<std::unique_ptr<Transport>> own_transports;  // by endpoint; empty: the network's
  std::vector<std::unique_ptr<Device>> devices;
  MonotonicClock clock;

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::optional<WorkerEnd>> ends;
  int ended = 0;

  Transport& transport(int endpoint) {
    if (own_transports.empty()) return network->transport(endpoint);
    return *own_transports[static_cast<std::size_t>(endpoint)];
  }
};

void work(const std::shared_ptr<Team>& team, int endpoint) {
  // The default slack of 50 us would be added to every timer.
  prctl(PR_SET_TIMERSLACK, 1);
  const auto index = static_cast<std::size_t>(endpoint);
  Worker worker(*team->plan, team->transport(endpoint), *team->devices[index], team->clock,
                endpoint == 0 ? team->sink.get() : nullptr, *team->stop);
  WorkerEnd end = worker.run();
  const std::lock_guard<std::mutex> lock(team->mutex);
  team->ends[index] = std::move(end);
  ++team->ended;
  team->changed.notify_all();
}

// True where all came back. Once the first has, the others have a while.
bool wait_for_all(Team& team) {
  const auto size = static_cast<int>(team.ends.size());
  const auto grace = std::chrono::nanoseconds(2 * team.plan->tuning.patience_ns + 2'000'000'000);
  std::unique_lock<std::mutex> lock(team.mutex);
  team.changed.wait(lock, [&] { return team.ended > 0; });
  team.changed.wait_until(lock, std::chrono::system_clock::now() + grace,
                          [&] { return team.ended == size; });
  return team.ended == size;
}

}  // namespace

ThreadsTuning default_tuning(int workers) {
  ThreadsTuning tuning;
  const int cores = core_count();
  if (workers <= cores) tuning.spin_ns = 50'000;
  return tuning;
}

RunOutcome run_on_threads(std::shared_ptr<const RunPlan> plan, const DeviceMaker& make_device,
                          std::shared_ptr<IterationSink> sink, const ThreadsTuning& tuning,
                          std::shared_ptr<std::atomic<bool>> stop,
                          const TransportMaker& make_transport) {
  const Grid grid = plan->grid;
  auto team = std::make_shared<Team>();
  team->network = std::make_unique<ThreadsNetwork>(grid.size(), pairs_that_talk(*plan), tuning);
  team->plan = std::move(plan);
  team->sink = std::move(sink);
  team->stop = std::move(stop);
  team->ends.resize(static_cast<std::size_t>(grid.size()));
  for (int endpoint = 0; endpoint < grid.size(); ++endpoint) {
    team->devices.push_back(make_device(grid.place(endpoint)));
    if (!make_transport) continue;
    team->own_transports.push_back(
        make_transport(grid.place(endpoint), team->network->transport(endpoint)));
  }
  std::vector<std::thread> threads;
  for (int endpoint = 0; endpoint < grid.size(); ++endpoint) {
    threads.emplace_back([team, endpoint] { work(team, endpoint); });
  }

  RunOutcome outcome;
  std::string fault;  // of the first worker that could not get ready
  bool why_is_fault = false;
  outcome.left_behind = !wait_for_all(*team);
  if (outcome.left_behind) team->stop->store(true);
  std::unique_lock<std::mutex> lock(team->mutex);
  for (int endpoint = 0; endpoint < grid.size(); ++endpoint) {
    const auto index = static_cast<std::size_t>(endpoint);
    const std::optional<WorkerEnd>& end = team->ends[index];
    if (!end) {
      outcome.waiting.push_back("rank " + std::to_string(grid.place(endpoint).rank) +
                                " did not come back");
      continue;
    }
    if (end->end == RunEnd::kCompleted) continue;
    if (outcome.why.empty()) outcome.why = end->why;
    if (fault.empty()) fault = end->fault;
    why_is_fault = why_is_fault || outcome.why == end->fault;
    outcome.end = std::max(outcome.end, end->end);
    outcome.waiting.push_back(end->waiting);
    const Place place = grid.place(endpoint);
    if (end->end == RunEnd::kBlocked && place.lane == 0 && end->next_task != kNoTask) {
      outcome.blocked.push_back(team->plan->world(0, place.replica).program().task(end->next_task));
    }
  }
  // Somebody may have heard of silence first.
  if (outcome.end == RunEnd::kFault && !fault.empty() && !why_is_fault) outcome.why = fault;
  // Who was told to stop may yet come back. A thread that does must not read
  // what its caller has freed by then, so it is waited for a little longer.
  team->changed.wait_for(lock, std::chrono::seconds(1), [&] { return team->ended == grid.size(); });
  for (std::size_t index = 0; index < threads.size(); ++index) {
    if (!team->ends[index]) threads[index].detach();
  }
  lock.unlock();
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  return outcome;
}

}  // namespace rrfp
