#include "experiments/sweep_summary.h"

#include <algorithm>

namespace rrfp {

namespace {

using Times = std::vector<std::int64_t>;

// Compares memory, blind to less than half an activation per rank.
class MemoryScale {
 public:
  explicit MemoryScale(const Scenario& scenario) : ranks_(scenario.pipeline.ranks) {
    const std::vector<std::int64_t>& bytes = scenario.memory.activation_bytes.values;
    half_bytes_ = *std::max_element(bytes.begin(), bytes.end()) / 2;
  }

  // Neither on the rank with the most nor in total more than `other`.
  bool within(const PeakMemory& memory, const PeakMemory& other) const {
    return memory.bytes - other.bytes <= half_bytes_ &&
           (memory.all_ranks_bytes - other.all_ranks_bytes) / ranks_ <= half_bytes_;
  }

  MemoryAgainstBaseline against(const PeakMemory& memory, const PeakMemory& baseline) const {
    if (!within(memory, baseline)) return MemoryAgainstBaseline::kMore;
    return within(baseline, memory) ? MemoryAgainstBaseline::kEqual : MemoryAgainstBaseline::kLess;
  }

 private:
  std::int64_t half_bytes_ = 0;
  std::int64_t ranks_ = 1;
};

bool misses_latency_draws(const Scenario& scenario, std::size_t policy) {
  if (scenario.policies[policy].mode.value_or(scenario.network.mode) != NetworkMode::kLaunchQueue) {
    return false;
  }
  return std::any_of(scenario.variability.begin(), scenario.variability.end(),
                     [](const VariabilityModel& model) { return acts_on_messages(model); });
}

// Everything but the comparisons. `times` gets the policy's, in order of
// iteration, of all runs.
PolicySummary summary_of(const SweepPoint& point, std::size_t policy, Times& times) {
  const Scenario& scenario = point.scenario;
  PolicySummary summary;
  summary.name = scenario.policies[policy].name;
  summary.fixed = scenario.policies[policy].policy.window == 1;
  summary.misses_latency_draws = misses_latency_draws(scenario, policy);
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

void compare_at_memory(std::vector<PolicySummary>& summaries, std::size_t baseline,
                       const MemoryScale& scale) {
  for (PolicySummary& summary : summaries) {
    summary.against_baseline = scale.against(summary.memory, summaries[baseline].memory);
    if (!has_times(summary)) continue;
    const PolicySummary* best = nullptr;
    for (const PolicySummary& other : summaries) {
      if (!other.fixed || other.misses_latency_draws || !has_times(other)) continue;
      if (!scale.within(other.memory, summary.memory)) continue;
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
  const auto baseline = static_cast<std::size_t>(point.scenario.baseline);
  compare_with_baseline(summaries, times, baseline, point.scenario.seed);
  compare_at_memory(summaries, baseline, MemoryScale(point.scenario));
  return summaries;
}

}  // namespace rrfp
