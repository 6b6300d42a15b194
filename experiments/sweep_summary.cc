#include "experiments/sweep_summary.h"

#include <algorithm>

namespace rrfp {

namespace {

using Times = std::vector<std::int64_t>;

MemoryAgainstBaseline against(const PeakMemory& memory, const PeakMemory& baseline) {
  if (!memory.within(baseline)) return MemoryAgainstBaseline::kMore;
  return baseline.within(memory) ? MemoryAgainstBaseline::kEqual : MemoryAgainstBaseline::kLess;
}

// Everything but the comparisons. `times` gets the policy's, in order of
// iteration, of all runs.
PolicySummary summary_of(const SweepPoint& point, std::size_t policy, Times& times) {
  const Scenario& scenario = point.scenario;
  PolicySummary summary;
  summary.name = scenario.policies[policy].name;
  summary.fixed = scenario.policies[policy].policy.window == 1;
  const double ranks = scenario.pipeline.ranks * scenario.data_parallel.replicas;
  double busy_ns = 0;
  double span_ns = 0;
  for (std::size_t iteration = 0; iteration < point.done.size(); ++iteration) {
    if (!point.done[iteration]) continue;
    const SweepRun& run = point.runs[policy][iteration];
    times.push_back(run.iteration_ns);
    ++summary.runs;
    summary.blocked += run.completed ? 0 : 1;
    busy_ns += static_cast<double>(run.busy_ns);
    span_ns += static_cast<double>(run.iteration_ns) * ranks;
    PeakMemory& memory = summary.memory;
    if (run.peak_bytes > memory.bytes) {
      memory.bytes = run.peak_bytes;
      memory.inbox_bytes = run.peak_inbox_bytes;
    }
    memory.all_ranks_bytes = std::max(memory.all_ranks_bytes, run.all_ranks_bytes);
  }
  if (summary.blocked > 0) return summary;
  summary.mean_ns = mean(times);
  summary.p50_ns = percentile(times, 50);
  summary.p95_ns = percentile(times, 95);
  summary.idle_share = span_ns > 0 ? 1 - busy_ns / span_ns : 0;
  return summary;
}

bool has_times(const PolicySummary& summary) { return summary.blocked == 0 && summary.mean_ns > 0; }

void compare_with_baseline(std::vector<PolicySummary>& summaries, const std::vector<Times>& times,
                           std::size_t baseline, std::uint64_t seed) {
  for (PolicySummary& summary : summaries) {
    summary.against_baseline = against(summary.memory, summaries[baseline].memory);
  }
  if (!has_times(summaries[baseline])) return;
  std::vector<std::size_t> compared;
  std::vector<Times> compared_times;
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    const bool positive =
        std::all_of(times[i].begin(), times[i].end(), [](std::int64_t ns) { return ns > 0; });
    if (!has_times(summaries[i]) || !positive) continue;
    summaries[i].speedup = summaries[baseline].mean_ns / summaries[i].mean_ns;
    compared.push_back(i);
    compared_times.push_back(times[i]);
  }
  if (times[baseline].size() < 2) return;
  const std::vector<Interval> intervals = bootstrap_ratios(times[baseline], compared_times, seed);
  for (std::size_t i = 0; i < compared.size(); ++i) {
    summaries[compared[i]].speedup_interval = intervals[i];
  }
}

void compare_at_memory(std::vector<PolicySummary>& summaries) {
  for (PolicySummary& summary : summaries) {
    if (!has_times(summary)) continue;
    const PolicySummary* best = nullptr;
    for (const PolicySummary& other : summaries) {
      if (!other.fixed || !has_times(other) || !other.memory.within(summary.memory)) continue;
      if (best == nullptr || other.mean_ns < best->mean_ns) best = &other;
    }
    if (best == nullptr) continue;
    summary.speedup_at_memory = best->mean_ns / summary.mean_ns;
    summary.fixed_at_memory = best->name;
  }
}

}  // namespace

std::string_view word(MemoryAgainstBaseline memory) {
  switch (memory) {
    case MemoryAgainstBaseline::kEqual:
      return "equal";
    case MemoryAgainstBaseline::kLess:
      return "less";
    case MemoryAgainstBaseline::kMore:
      return "more";
  }
  return "";
}

std::vector<PolicySummary> summarize(const SweepPoint& point) {
  std::vector<PolicySummary> summaries;
  if (point.iterations_done() == 0) return summaries;
  std::vector<Times> times(point.runs.size());
  for (std::size_t policy = 0; policy < point.runs.size(); ++policy) {
    summaries.push_back(summary_of(point, policy, times[policy]));
  }
  compare_with_baseline(summaries, times, static_cast<std::size_t>(point.scenario.baseline),
                        point.scenario.seed);
  compare_at_memory(summaries);
  return summaries;
}

}  // namespace rrfp
