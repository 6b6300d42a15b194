#include "executor/calibration.h"

#include <sys/prctl.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "executor/doorbell.h"
#include "traces/case_file.h"
#include "traces/message_tables.h"
#include "traces/saturating.h"
#include "traces/transfer.h"

namespace rrfp {

namespace {

/// No executor needs as long for a task while its worker has a core.
constexpr std::int64_t kLongTaskNs = 1'000'000;

std::int64_t trimmed_mean(std::vector<std::int64_t> numbers) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  numbers.resize(numbers.size() - numbers.size() / 100);
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0}) /
         static_cast<std::int64_t>(numbers.size());
}

}  // namespace

std::int64_t quantile_ns(std::vector<std::int64_t> numbers, int permille) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  return numbers[(numbers.size() - 1) * static_cast<std::size_t>(permille) / 1000];
}

void calibrate(const Overheads& overheads, Calibration& to) {
  to.task_extra_ns = std::max<std::int64_t>(0, trimmed_mean(overheads.task_ns));
  to.message_extra_ns = std::max<std::int64_t>(0, trimmed_mean(overheads.message_ns));
}

std::string why_void(const Calibration& calibration) {
  if (calibration.timer_p99_ns > kMostTimerLateNs) {
    return "this machine is too noisy (timers: p99 over " +
           std::to_string(kMostTimerLateNs / 1000) + " us)";
  }
  if (calibration.spread_permille > kMostSpreadPermille) {
    return "this machine is too noisy (what tasks and messages take longer differs between "
           "iterations by " +
           std::to_string(calibration.spread_permille / 10) + " % of a task; at most " +
           std::to_string(kMostSpreadPermille / 10) + " %)";
  }
  return "";
}

std::string why_void(const Calibration& calibration, std::int64_t mean_task_ns) {
  if (mean_task_ns < calibration.task_extra_ns) {
    const std::string text = "tasks take " + std::to_string(mean_task_ns) +
                             " ns in the mean, less than what the executor adds to each, " +
                             std::to_string(calibration.task_extra_ns) + " ns: ";
    if (mean_task_ns >= kLongTaskNs) {
      return text + "this machine has too few cores for " + std::to_string(calibration.workers) +
             " workers, or is too busy; take fewer ranks, or a machine with a core for each";
    }
    return text +
           "figures tell how fast it dispatches, not what a schedule does; take tasks of 1 ms or "
           "more";
  }
  return why_void(calibration);
}

std::int64_t mean_task_ns(const Case& input) {
  const Program& program = input.program;
  double sum = 0;
  std::int64_t count = 0;
  for (TaskId task = 0; task < program.task_ids(); ++task) {
    if (!program.exists(task)) continue;
    sum += static_cast<double>(input.duration_ns[static_cast<std::size_t>(task)]);
    ++count;
  }
  return count == 0 ? 0 : static_cast<std::int64_t>(sum / static_cast<double>(count));
}

std::int64_t spread_permille(std::vector<std::int64_t> extra_ns, std::int64_t task_ns) {
  if (extra_ns.empty()) return 0;
  std::sort(extra_ns.begin(), extra_ns.end());
  const std::size_t outer = extra_ns.size() < 4 ? 0 : 1;
  const std::int64_t apart_ns = extra_ns[extra_ns.size() - 1 - outer] - extra_ns[outer];
  const double permille = 1000.0 * static_cast<double>(apart_ns) /
                          static_cast<double>(std::max<std::int64_t>(1, task_ns));
  return static_cast<std::int64_t>(std::min(permille, 1e9));
}

void probe_timers(int threads, int count, Calibration& to) {
  std::vector<std::vector<std::int64_t>> late(static_cast<std::size_t>(threads));
  std::vector<std::thread> probes;
  for (int i = 0; i < threads; ++i) {
    probes.emplace_back([&late, i, count] {
      prctl(PR_SET_TIMERSLACK, 1);
      Doorbell bell;
      for (int k = 0; k < count; ++k) {
        const std::int64_t until_ns =
            MonotonicClock::read_ns() + 1'000'000 + (i * 7 + k) % 16 * 62'500;
        bell.wait(bell.token(), until_ns);
        late[static_cast<std::size_t>(i)].push_back(MonotonicClock::read_ns() - until_ns);
      }
    });
  }
  for (std::thread& probe : probes) probe.join();
  std::vector<std::int64_t> all;
  for (const std::vector<std::int64_t>& of : late) all.insert(all.end(), of.begin(), of.end());
  to.workers = threads;
  to.timer_p50_ns = quantile_ns(all, 500);
  to.timer_p99_ns = quantile_ns(std::move(all), 990);
}

namespace {

// From the end of the transmission, as schedulers expect it in a run: of edges of which `input`
// says nothing, what build_message_tables() makes of the world.
void keep_expectations(const Case& input, Case& out) {
  const Program& program = input.program;
  std::vector<std::vector<std::int64_t>>& expected_ns = out.network.expected_latency_ns;
  expected_ns.resize(program.edges().size());
  const auto said = [](const std::vector<std::int64_t>& of_edge) { return !of_edge.empty(); };
  if (std::all_of(expected_ns.begin(), expected_ns.end(), said)) return;
  const MessageTables messages = build_message_tables(input);
  for (std::size_t id = 0; id < expected_ns.size(); ++id) {
    if (program.edges()[id].local() || said(expected_ns[id])) continue;
    expected_ns[id].resize(static_cast<std::size_t>(program.microbatches()));
    for (int m = 0; m < program.microbatches(); ++m) {
      const auto at = static_cast<std::size_t>(m);
      const std::size_t message = id * expected_ns[id].size() + at;
      expected_ns[id][at] = messages.expected_transfer_ns[message] - messages.busy_ns[message];
    }
  }
}

Error lacks_link(const Edge& edge, int lane) {
  return Error{"the calibration has no link from rank " + std::to_string(edge.from_rank) +
               " to rank " + std::to_string(edge.to_rank) +
               (lane > 0 ? " of lane " + std::to_string(lane) : "") +
               ", which messages take; calibrate with a file of the same pipeline"};
}

// What the machine's links add to the messages along `edge`, by lane and microbatch.
Result<void> add_links(const Calibration& calibration, const Case& input, std::size_t id,
                       std::vector<std::int64_t>& latency_ns) {
  const Edge& edge = input.program.edges()[id];
  const Network& network = input.network;
  if (calibration.links.empty() || !edge.carries || network.message_bytes.empty()) return {};
  const int microbatches = input.program.microbatches();
  for (int lane = 0; lane < input.tensor_parallel.lanes; ++lane) {
    const CalibratedLink* link = find_link(calibration.links, edge.from_rank, edge.to_rank, lane);
    if (link == nullptr) return lacks_link(edge, lane);
    for (int m = 0; m < microbatches; ++m) {
      const auto producer =
          static_cast<std::size_t>(input.program.task_id(edge.from, edge.slot(), m));
      const std::int64_t bytes = network.message_bytes[producer];
      std::int64_t& ns = latency_ns[static_cast<std::size_t>(lane * microbatches + m)];
      const std::int64_t world_ns =
          capped_sum(transmission_ns(bytes, network.bytes_per_second), ns);
      const std::int64_t travels = std::min(bytes, calibration.payload_limit_bytes.value_or(bytes));
      ns = capped_sum(ns, link_extra_ns(*link, travels, world_ns));
    }
  }
  return {};
}

}  // namespace

Result<Case> with_calibration(const Case& input, const Calibration& calibration) {
  if (input.network.mode == NetworkMode::kLaunchQueue) {
    return Error{
        "a calibration says nothing about a launch-queue network, which no run has; expected "
        "eager or rendezvous"};
  }
  Case out = input;
  const Program& program = out.program;
  if (out.expected_ns.empty()) out.expected_ns = out.duration_ns;
  keep_expectations(input, out);
  for (TaskId task = 0; task < program.task_ids(); ++task) {
    if (program.exists(task)) {
      out.duration_ns[static_cast<std::size_t>(task)] += calibration.task_extra_ns;
    }
  }
  out.network.latency_ns.resize(program.edges().size());
  for (std::size_t id = 0; id < program.edges().size(); ++id) {
    if (program.edges()[id].local()) continue;
    std::vector<std::int64_t>& latency_ns = out.network.latency_ns[id];
    latency_ns.resize(static_cast<std::size_t>(out.tensor_parallel.lanes * program.microbatches()),
                      0);
    if (Result<void> added = add_links(calibration, input, id, latency_ns); !added.ok()) {
      return added.error();
    }
    for (std::int64_t& ns : latency_ns) ns = capped_sum(ns, calibration.message_extra_ns);
  }
  if (Result<void> checked = check_magnitudes(out); !checked.ok()) return checked.error();
  return out;
}

}  // namespace rrfp
