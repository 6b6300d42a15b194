#include "experiments/workload_scenario.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "experiments/display_units.h"
#include "experiments/workload_lengths.h"
#include "experiments/workload_policies.h"
#include "experiments/workload_report.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr double kMegabyte = 1e6;
/// What agreeing on the order takes in a tensor-parallel group; nobody has measured it.
constexpr int kAssumedVoteUs = 5;

std::string in_json(const std::string& text) {
  return to_text(JsonValue(text), JsonLayout::kCompact);
}

using StageValue = std::function<double(const WorkloadStage&)>;

// One number where all stages have the same, else a list.
std::string whole_numbers(const std::vector<double>& values,
                          const std::function<double(double)>& round) {
  std::string list;
  bool same = true;
  for (const double value : values) {
    same = same && round(value) == round(values.front());
    list += (list.empty() ? "" : ", ") + fixed(round(value), 0);
  }
  return same ? fixed(round(values.front()), 0) : "[" + list + "]";
}

std::vector<double> by_stage(const WorkloadJob& job, const StageValue& value) {
  std::vector<double> values;
  for (const WorkloadStage& stage : job.workload.stages) values.push_back(value(stage));
  return values;
}

double nearest_whole(double value) { return std::floor(value + 0.5); }
double next_whole(double value) { return std::ceil(value); }

std::string in_us(const WorkloadJob& job, const StageValue& ns) {
  return whole_numbers(by_stage(job, [&ns](const WorkloadStage& stage) { return ns(stage) / 1e3; }),
                       nearest_whole);
}

// The gradient that a stage sends back is as large as the activation that it got.
double gradient_bytes(const WorkloadJob& job, const WorkloadStage& stage) {
  if (stage.spec.predecessors.empty()) return 0;
  const auto before = static_cast<std::size_t>(stage.spec.predecessors.front());
  return job.workload.stages[before].output_bytes;
}

double stash_fraction(const WorkloadStage& stage) {
  if (stage.activation_bytes <= 0) return 0;
  return std::min(1.0, std::ceil(1000 * stage.stash_bytes / stage.activation_bytes) / 1000);
}

std::string stash_fractions(const WorkloadJob& job) {
  const std::vector<double> values = by_stage(job, stash_fraction);
  const auto text = [](double value) {
    std::string digits = fixed(value, 3);
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
    return digits;
  };
  if (std::count(values.begin(), values.end(), values.front()) ==
      static_cast<std::ptrdiff_t>(values.size())) {
    return text(values.front());
  }
  std::string list;
  for (const double value : values) list += (list.empty() ? "" : ", ") + text(value);
  return "[" + list + "]";
}

bool is_plain_chain(const Workload& workload) {
  for (std::size_t i = 0; i < workload.stages.size(); ++i) {
    const StageSpec& spec = workload.stages[i].spec;
    const bool follows = i == 0 ? spec.predecessors.empty()
                                : spec.predecessors == std::vector<int>{static_cast<int>(i) - 1};
    if (!follows || spec.backward != Backward::kFull) return false;
  }
  return true;
}

std::string pipeline_text(const WorkloadJob& job) {
  const Workload& workload = job.workload;
  std::string text = "  \"pipeline\": {\"ranks\": " + std::to_string(workload.ranks) +
                     ", \"microbatches\": " + std::to_string(job.microbatches) +
                     ", \"split_backward\": true";
  if (is_plain_chain(workload)) {
    if (job.request.chunks > 1) {
      text += ", \"shape\": \"looped\", \"chunks\": " + std::to_string(job.request.chunks);
    }
    return text + "},\n";
  }
  text += ", \"stages\": [\n";
  for (std::size_t i = 0; i < workload.stages.size(); ++i) {
    const StageSpec& spec = workload.stages[i].spec;
    std::string before;
    for (const int stage : spec.predecessors) {
      before += (before.empty() ? "" : ", ") + std::to_string(stage);
    }
    text += "    {\"rank\": " + std::to_string(spec.rank) + ", \"predecessors\": [" + before + "]";
    if (spec.backward == Backward::kInput) text += ", \"backward\": \"input\"";
    if (spec.backward == Backward::kNone) text += ", \"backward\": \"none\"";
    text += i + 1 < workload.stages.size() ? "},\n" : "}\n";
  }
  return text + "  ]},\n";
}

std::string durations_text(const WorkloadJob& job) {
  const auto part = [&job](const char* name, Growth LayerWork::*work) {
    return "    \"" + std::string(name) + "_us\": " +
           in_us(job, [work](const WorkloadStage& stage) { return (stage.time_ns.*work).sum(); });
  };
  return "  \"durations\": {\n" + part("forward", &LayerWork::forward) + ",\n" +
         part("input_gradient", &LayerWork::input_gradient) + ",\n" +
         part("weight_gradient", &LayerWork::weight_gradient) + "\n  },\n";
}

std::string groups_text(const WorkloadJob& job) {
  std::string text;
  if (job.machine.tp > 1) {
    const std::string us = std::to_string(kAssumedVoteUs);
    text += "  \"tensor_parallel\": {\"lanes\": " + std::to_string(job.machine.tp) +
            ", \"vote_us\": " + us + ", \"announce_us\": " + us + "},  // assumed: " + us +
            " us each\n";
  }
  text += "  \"data_parallel\": {\n    \"replicas\": " + std::to_string(job.request.dp) + ",\n";
  text += "    \"gradient_sync_us\": " +
          in_us(job, [](const WorkloadStage& stage) { return stage.gradient_sync_ns; }) + ",\n";
  text += "    \"optimizer_us\": " + fixed(nearest_whole(job.workload.optimizer_ns / 1e3), 0) +
          "\n  },\n";
  return text;
}

std::string network_text(const WorkloadJob& job) {
  const auto bytes = [&job](const StageValue& value) {
    return whole_numbers(by_stage(job, value), next_whole);
  };
  std::string gbit = fixed(job.network_gbit, 3);
  gbit.erase(gbit.find_last_not_of('0') + 1);
  if (gbit.ends_with('.')) gbit.pop_back();
  std::string latency = fixed(job.latency_us, 3);
  latency.erase(latency.find_last_not_of('0') + 1);
  if (latency.ends_with('.')) latency.pop_back();
  return "  \"network\": {\n    \"mode\": \"eager\",\n    \"bandwidth_gbit_per_second\": " + gbit +
         ",\n    \"latency_us\": " + latency + ",\n    \"activation_bytes\": " +
         bytes([](const WorkloadStage& stage) { return stage.output_bytes; }) +
         ",\n    \"gradient_bytes\": " +
         bytes([&job](const WorkloadStage& stage) { return gradient_bytes(job, stage); }) +
         "\n  },\n";
}

std::string memory_text(const WorkloadJob& job, bool fits) {
  std::string text = "  \"memory\": {\n    \"activation_mb\": ";
  text += whole_numbers(
      by_stage(job, [](const WorkloadStage& stage) { return stage.activation_bytes / kMegabyte; }),
      next_whole);
  text += ",\n    \"weight_stash_fraction\": " + stash_fractions(job);
  if (fits) {
    std::vector<double> budget = job.workload.budget_bytes;
    for (double& bytes : budget) bytes /= kMegabyte;
    text += ",\n    \"budget_mb\": " +
            whole_numbers(budget, [](double value) { return std::floor(value); });
  }
  return text + "\n  },\n";
}

std::string worlds_text(const WorkloadJob& job) {
  const auto lengths = [&job](const std::string& indent) {
    return job.lengths.kind == LengthKind::kNone ? "" : lengths_text(job, indent);
  };
  if (!job.worlds.empty()) return variability_text(job.worlds, lengths);
  return "  // Assumed: a cluster without faults. `rrfp presets` lists what else varies.\n" +
         variability_text({{std::string(kAssumedWorld)}}, lengths);
}

// Microbatches differ in ways that are known beforehand.
bool arranges(const WorkloadJob& job) {
  bool differs = job.lengths.kind != LengthKind::kNone;
  for (const std::vector<std::string>& world : job.worlds) {
    for (const std::string& name : world) {
      differs = differs || name.starts_with("seqlen-") || name.starts_with("mm-");
    }
  }
  return differs;
}

}  // namespace

std::string workload_scenario(const WorkloadJob& job) {
  const bool fits = ranks_that_lack(job).empty();
  PolicyNeeds needs;
  needs.pipeline.ranks = job.workload.ranks;
  needs.pipeline.microbatches = job.microbatches;
  needs.pipeline.split_backward = true;
  for (const WorkloadStage& stage : job.workload.stages) {
    needs.pipeline.stages.push_back(stage.spec);
  }
  needs.activation_bytes = largest_activations(job);
  if (fits) needs.budget_bytes = job.workload.budget_bytes;
  needs.arranges = arranges(job);
  const PolicyText policies = workload_policies(needs);

  std::string text = workload_head(job);
  text += "{\n  \"schema\": \"rrfp.scenario/1\",\n";
  text += "  \"name\": " + in_json(job.title + ", " + spread_of(job)) + ",\n";
  text += "  \"seed\": 1,\n  \"iterations\": " + std::to_string(job.iterations) + ",\n";
  text += pipeline_text(job) + durations_text(job) + groups_text(job) + network_text(job) +
          memory_text(job, fits) + worlds_text(job);
  text +=
      "  // fixed: a pre-committed order; 1f1b with whole backwards, as frameworks run it, and\n"
      "  // split. ready+wait: the order as a hint, with anticipation. bf, bfw: backward, forward\n"
      "  // (, weight) first. @: within the memory of that schedule, or of the GPU.\n";
  text += "  \"baseline\": \"" + policies.baseline + "\",\n  \"policies\": [\n" + policies.lines +
          "  ]\n}\n";
  return text;
}

}  // namespace rrfp
