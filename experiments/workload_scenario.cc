#include "experiments/workload_scenario.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "experiments/display_units.h"
#include "experiments/text_table.h"
#include "experiments/workload_policies.h"

namespace rrfp {

namespace {

constexpr double kMegabyte = 1e6;
constexpr double kGigabyte = 1e9;
/// What agreeing on the order takes in a tensor-parallel group; nobody has measured it.
constexpr int kAssumedVoteUs = 5;

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

std::vector<double> activations_by_rank(const WorkloadJob& job,
                                        double (*join)(double so_far, double bytes)) {
  std::vector<double> bytes(static_cast<std::size_t>(job.workload.ranks), 0);
  for (const WorkloadStage& stage : job.workload.stages) {
    double& rank = bytes[static_cast<std::size_t>(stage.spec.rank)];
    rank = join(rank, std::ceil(stage.activation_bytes / kMegabyte) * kMegabyte);
  }
  return bytes;
}

double larger(double a, double b) { return std::max(a, b); }
double together(double a, double b) { return a + b; }

// Ranks where not even one activation of each stage fits.
std::vector<int> ranks_that_lack(const WorkloadJob& job) {
  const std::vector<double> least = activations_by_rank(job, together);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < least.size(); ++rank) {
    if (job.workload.budget_bytes[rank] < least[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
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

std::string world_text(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "\"" : ", \"") + name + "\"";
  return "[" + list + "]";
}

std::string variability_text(const WorkloadJob& job) {
  if (job.worlds.empty()) {
    return "  \"variability\": [  // assumed: --variability says which\n"
           "    {\"model\": \"lognormal\", \"on\": \"compute\", \"cv\": 0.05},\n"
           "    {\"model\": \"lognormal\", \"on\": \"latency\", \"cv\": 1}\n"
           "  ],\n";
  }
  if (job.worlds.size() == 1) {
    return "  \"variability\": " + world_text(job.worlds.front()) + ",\n";
  }
  std::string text = "  \"variability\": [],\n  \"grid\": {\"/variability\": [\n";
  for (std::size_t i = 0; i < job.worlds.size(); ++i) {
    text += "    " + world_text(job.worlds[i]) + (i + 1 < job.worlds.size() ? ",\n" : "\n");
  }
  return text + "  ]},\n";
}

std::string in_comment(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    const std::string line = text.substr(begin, end - begin);
    out += (line.empty() ? "//" : "// " + line) + "\n";
    begin = end + 1;
  }
  return out;
}

std::string spread_of(const WorkloadJob& job) {
  const WorkloadRequest& request = job.request;
  const int gpus = request.pp * job.machine.tp * request.dp;
  std::string text = std::to_string(gpus) + " x " + std::string(job.machine.gpu.title) + ": pp " +
                     std::to_string(request.pp) + ", tp " + std::to_string(job.machine.tp) +
                     ", dp " + std::to_string(request.dp);
  if (request.chunks > 1) text += ", " + std::to_string(request.chunks) + " stages per rank";
  return text;
}

std::string batch_of(const WorkloadJob& job) {
  std::string text = std::to_string(job.microbatches) + " microbatches";
  if (job.profiled) return text + " of the profile's minibatch";
  text += " of " + std::to_string(job.batch.sequences) + " x " + std::to_string(job.batch.tokens) +
          " tokens";
  if (job.batch.images > 0) {
    text += ", " + std::to_string(job.batch.images) + " images of " +
            std::to_string(job.batch.patches) + " patches in each sequence";
  }
  return text;
}

// How the numbers came about, for whoever reads the file.
std::string head(const WorkloadJob& job) {
  std::string text = job.title + " on " + spread_of(job) + ".\n" + batch_of(job) +
                     ".\nMade by: " + job.command + "\n";
  if (job.profiled) {
    text += "Measured: times and sizes of layers. Assumed: how a backward splits into I and W.\n";
  } else {
    text += "Modelled, not measured: a task takes its FLOPs over " +
            fixed(job.machine.efficiency * 100, 0) + " % of " +
            fixed(job.machine.gpu.flops / 1e12, 0) + " TFLOP/s" +
            (job.machine.tp > 1 ? " and tp, and the exchanges of its group over NVLink" : "") +
            ".\nShape: " + job.source + ".\n";
  }
  text += "GPU: " + std::string(job.machine.gpu.source) + ".\n";
  text +=
      "All sizes are of one GPU; the budget is its memory less the state (weights, gradients, "
      "optimizer).\n\n";
  return in_comment(text + workload_table(job));
}

}  // namespace

std::string workload_table(const WorkloadJob& job) {
  TextTable table({"stage", "rank", "holds", "parameters [M]", "F [ms]", "I [ms]", "W [ms]",
                   "activation [GB]", "message [MB]", "state [GB]", "budget [GB]",
                   "activations that fit"});
  table.align_left(2);
  const auto add = [&job, &table](std::size_t number) {
    const WorkloadStage& stage = job.workload.stages[number];
    const double budget = job.workload.budget_bytes[static_cast<std::size_t>(stage.spec.rank)];
    const double fit =
        budget > 0 && stage.activation_bytes > 0 ? std::floor(budget / stage.activation_bytes) : 0;
    table.add({std::to_string(number), std::to_string(stage.spec.rank), stage.contents,
               fixed(stage.parameters / 1e6, 1), fixed(stage.time_ns.forward.sum() / 1e6, 3),
               fixed(stage.time_ns.input_gradient.sum() / 1e6, 3),
               fixed(stage.time_ns.weight_gradient.sum() / 1e6, 3),
               fixed(stage.activation_bytes / kGigabyte, 3),
               fixed(stage.output_bytes / kMegabyte, 1), fixed(stage.state_bytes / kGigabyte, 1),
               fixed(budget / kGigabyte, 1), fixed(fit, 0)});
  };
  for (std::size_t i = 0; i < job.workload.stages.size(); ++i) add(i);
  return table.text();
}

std::vector<std::string> memory_warnings(const WorkloadJob& job) {
  const std::vector<double> least = activations_by_rank(job, together);
  std::vector<std::string> lines;
  for (const int rank : ranks_that_lack(job)) {
    const auto at = static_cast<std::size_t>(rank);
    const double state = job.machine.gpu.memory_bytes - job.workload.budget_bytes[at];
    lines.push_back(
        "rank " + std::to_string(rank) + " does not fit: " + fixed(state / kGigabyte, 1) +
        " GB of weights, gradients and optimizer and " + fixed(least[at] / kGigabyte, 1) +
        " GB of activations, of " + fixed(job.machine.gpu.memory_bytes / kGigabyte, 1) +
        " GB; more --pp or --tp, --use-distributed-optimizer, or a shorter sequence");
  }
  return lines;
}

std::string workload_scenario(const WorkloadJob& job) {
  const bool fits = ranks_that_lack(job).empty();
  PolicyNeeds needs;
  needs.pipeline.ranks = job.workload.ranks;
  needs.pipeline.microbatches = job.microbatches;
  needs.pipeline.split_backward = true;
  for (const WorkloadStage& stage : job.workload.stages)
    needs.pipeline.stages.push_back(stage.spec);
  needs.activation_bytes = activations_by_rank(job, larger);
  if (fits) needs.budget_bytes = job.workload.budget_bytes;
  const PolicyText policies = workload_policies(needs);

  std::string text = head(job);
  text += "{\n  \"schema\": \"rrfp.scenario/1\",\n";
  text += "  \"name\": \"" + job.title + ", " + spread_of(job) + "\",\n";
  text += "  \"seed\": 1,\n  \"iterations\": " + std::to_string(job.iterations) + ",\n";
  text += pipeline_text(job) + durations_text(job) + groups_text(job) + network_text(job) +
          memory_text(job, fits) + variability_text(job);
  text +=
      "  // fixed: a pre-committed order; 1f1b with whole backwards, as frameworks run it, and\n"
      "  // split. ready+wait: the order as a hint, with anticipation. bf, bfw: backward, forward\n"
      "  // (, weight) first. @: within the memory of that schedule, or of the GPU.\n";
  text += "  \"baseline\": \"" + policies.baseline + "\",\n  \"policies\": [\n" + policies.lines +
          "  ]\n}\n";
  return text;
}

}  // namespace rrfp
