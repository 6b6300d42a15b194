#include "sim/simulate_launch_queue.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/launch_batched.h"
#include "sim/launch_per_peer.h"
#include "sim/launch_queue.h"

namespace rrfp {

namespace {

Result<void> check_network(const Case& input) {
  if (input.policy.window != 1) {
    return Error{"network.mode launch-queue runs fixed orders only: policy.window must be 1"};
  }
  if (input.network.message_ns < 0) {
    return Error{"network.message_ns is " + std::to_string(input.network.message_ns) +
                 "; 0 or more"};
  }
  std::vector<std::pair<int, int>> links;
  for (std::size_t i = 0; i < input.network.link_delays.size(); ++i) {
    const LinkDelay& delay = input.network.link_delays[i];
    const std::string field = "network.link_delay_ns[" + std::to_string(i) + "]";
    for (const int rank : {delay.from_rank, delay.to_rank}) {
      if (rank < 0 || rank >= input.program.ranks()) {
        return Error{field + ": rank " + std::to_string(rank) + " is not one of 0 to " +
                     std::to_string(input.program.ranks() - 1)};
      }
    }
    if (delay.ns < 0) {
      return Error{field + ".ns is " + std::to_string(delay.ns) + "; 0 or more"};
    }
    links.emplace_back(delay.from_rank, delay.to_rank);
  }
  std::sort(links.begin(), links.end());
  const auto repeated = std::adjacent_find(links.begin(), links.end());
  if (repeated != links.end()) {
    return Error{"network.link_delay_ns: the link from " + std::to_string(repeated->first) +
                 " to " + std::to_string(repeated->second) + " is named twice"};
  }
  return {};
}

Result<LaunchProgram> lower(const Case& input, const Schedule& order, const LaunchOptions& launch) {
  const bool may_be_batched = launch.lowering == LaunchLowering::kBatched ||
                              (launch.lowering == LaunchLowering::kAutomatic &&
                               launch.cells.empty() && !input.program.split_backward());
  if (may_be_batched) {
    Result<LaunchProgram> lowered = lower_batched(input, order);
    if (lowered.ok() || launch.lowering == LaunchLowering::kBatched) return lowered;
  }
  return lower_per_peer(input, launch.cells.empty() ? place_cells(input, order) : launch.cells);
}

/// Adds the time from `from_ns` to `to_ns`, between two computes of a rank
/// that has decided something: up to `decided_ns` it waits for communication,
/// then the host launches for `host_ns`, then the queue is held up.
void add_gap(std::int64_t from_ns, std::int64_t to_ns, std::int64_t decided_ns,
             std::int64_t host_ns, IdleTimes* idle_ns) {
  const std::int64_t launched_ns = std::min(decided_ns + host_ns, to_ns);
  const std::int64_t dispatch_ns = launched_ns - std::min(decided_ns, to_ns);
  (*idle_ns)[static_cast<std::size_t>(IdleCause::kDispatch)] += dispatch_ns;
  (*idle_ns)[static_cast<std::size_t>(IdleCause::kRendezvous)] += to_ns - from_ns - dispatch_ns;
}

/// Adds the time from a rank's last end, `free_ns`, to the makespan. A rank
/// whose order cannot go on waits for its communication first.
void add_tail(const LaunchRank& actions, const LaunchRankTimes& times, bool finished,
              std::int64_t free_ns, std::int64_t makespan_ns, RankResult* result) {
  const auto idle_ns = [&](IdleCause cause) -> std::int64_t& {
    return result->idle_ns[static_cast<std::size_t>(cause)];
  };
  if (finished || result->order.empty()) {
    idle_ns(finished ? IdleCause::kDrain : IdleCause::kFill) += makespan_ns - free_ns;
    return;
  }
  std::int64_t stuck_ns = makespan_ns;
  if (actions.stuck.has_value()) {
    stuck_ns = free_ns;
    for (std::size_t k = 0; k < actions.actions.size(); ++k) {
      if (actions.actions[k].kind != LaunchKind::kWait) continue;
      stuck_ns = times.done_ns[k] == kNever ? makespan_ns : std::max(stuck_ns, times.done_ns[k]);
    }
  }
  idle_ns(IdleCause::kRendezvous) += stuck_ns - free_ns;
  idle_ns(actions.stuck.value_or(IdleCause::kRendezvous)) += makespan_ns - stuck_ns;
}

RankResult rank_result(const Case& input, const LaunchRank& actions, const LaunchRankTimes& times,
                       std::size_t tasks_of_rank, std::int64_t makespan_ns, bool idle_causes) {
  RankResult result;
  result.peak_bytes = actions.peak_bytes;
  std::int64_t free_ns = 0;
  for (std::size_t k = 0; k < actions.actions.size(); ++k) {
    const LaunchAction& action = actions.actions[k];
    if (action.kind != LaunchKind::kCompute || times.issue_ns[k] == kNever) continue;
    const std::int64_t decided_ns = times.decided_ns[k];
    if (result.order.empty()) {
      result.idle_ns[static_cast<std::size_t>(IdleCause::kFill)] = decided_ns;
      free_ns = decided_ns;
    }
    add_gap(free_ns, times.issue_ns[k], decided_ns, action.host_ns, &result.idle_ns);
    free_ns = times.issue_ns[k];
    for (int i = action.first; i < action.last; ++i) {
      const TaskId task = actions.tasks[static_cast<std::size_t>(i)];
      result.order.push_back(input.program.task(task));
      result.decided_ns.push_back(i == action.first ? decided_ns : free_ns);
      result.start_ns.push_back(free_ns);
      free_ns += input.duration_ns[static_cast<std::size_t>(task)];
      result.end_ns.push_back(free_ns);
    }
    result.busy_ns += free_ns - times.issue_ns[k];
  }
  add_tail(actions, times, result.order.size() == tasks_of_rank, free_ns, makespan_ns, &result);
  if (!idle_causes) result.idle_ns = {};
  return result;
}

/// The messages that ended, in order of their producer's finish.
std::vector<MessageRecord> message_records(const Program& program, const LaunchTimes& times,
                                           const std::vector<RankResult>& ranks) {
  std::vector<std::int64_t> end_ns(static_cast<std::size_t>(program.task_ids()), kNever);
  for (const RankResult& rank : ranks) {
    for (std::size_t i = 0; i < rank.order.size(); ++i) {
      end_ns[static_cast<std::size_t>(program.find(rank.order[i]))] = rank.end_ns[i];
    }
  }
  std::vector<MessageRecord> records;
  for (std::size_t message = 0; message < times.arrival_ns.size(); ++message) {
    if (times.arrival_ns[message] == kNever) continue;
    const auto id = static_cast<EdgeId>(message) / program.microbatches();
    const int microbatch = static_cast<int>(message) % program.microbatches();
    const Edge& edge = program.edge(id);
    const TaskId producer = program.task_id(edge.from, edge.slot(), microbatch);
    records.push_back({id, microbatch, end_ns[static_cast<std::size_t>(producer)],
                       times.sent_ns[message], times.arrival_ns[message]});
  }
  std::stable_sort(
      records.begin(), records.end(),
      [](const MessageRecord& a, const MessageRecord& b) { return a.finish_ns < b.finish_ns; });
  return records;
}

}  // namespace

Result<SimulationResult> simulate_launch_queue(const Case& input, const Schedule& order,
                                               const SimulateOptions& options,
                                               const LaunchOptions& launch) {
  if (Result<void> checked = check_network(input); !checked.ok()) return checked.error();
  const Result<LaunchProgram> lowered = lower(input, order, launch);
  if (!lowered.ok()) return lowered.error();
  const LaunchTimes times = evaluate(*lowered);

  SimulationResult result;
  result.completed = times.completed;
  result.makespan_ns = times.makespan_ns;
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
    const std::vector<Task>& tasks = order.ranks[rank];
    result.ranks.push_back(rank_result(input, lowered->ranks[rank], times.ranks[rank], tasks.size(),
                                       result.makespan_ns, options.idle_causes));
    const std::size_t started = result.ranks.back().order.size();
    if (started < tasks.size()) result.blocked.push_back(tasks[started]);
  }
  if (options.messages) {
    result.messages = message_records(input.program, times, result.ranks);
  }
  return result;
}

Result<SimulationResult> simulate_launch_queue(const PreparedCase& prepared,
                                               const SimulateOptions& options,
                                               const LaunchOptions& launch) {
  Case fitted = prepared.input();
  fitted.program = prepared.program();
  fitted.duration_ns = prepared.duration_ns();
  LaunchOptions with_cells = launch;
  const HintSpec& hint = prepared.input().policy.hint;
  if (launch.cells.empty() && !hint.messages.empty()) {
    Result<LaunchCells> cells = given_cells(fitted.program, prepared.schedule(), hint.messages);
    if (!cells.ok()) return cells.error();
    with_cells.cells = *std::move(cells);
  }
  const auto expected_ns = prepared.scheduler_config(0).expected_ns;
  fitted.expected_ns.assign(expected_ns.begin(), expected_ns.end());
  Result<SimulationResult> result =
      simulate_launch_queue(fitted, prepared.schedule(), options, with_cells);
  if (result.ok()) result->arrangement = prepared.arrangement();
  return result;
}

}  // namespace rrfp
