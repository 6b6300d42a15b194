#include "experiments/workload_report.h"

#include <algorithm>
#include <cmath>

#include "experiments/display_units.h"
#include "experiments/text_list.h"
#include "experiments/text_table.h"

namespace rrfp {

namespace {

constexpr double kMegabyte = 1e6;
constexpr double kGigabyte = 1e9;

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

std::string batch_of(const WorkloadJob& job) {
  std::string text = counted(job.microbatches, "microbatch");
  if (job.profiled) return text + " of the profile's minibatch";
  text += " of " + std::to_string(job.batch.sequences) + " x " + std::to_string(job.batch.tokens) +
          " tokens";
  if (job.batch.images > 0) {
    text += ", " + std::to_string(job.batch.images) + " images of " +
            std::to_string(job.batch.patches) + " patches in each sequence";
  }
  return text;
}

}  // namespace

std::string spread_of(const WorkloadJob& job) {
  const WorkloadRequest& request = job.request;
  const int gpus = request.pp * job.machine.tp * request.dp;
  std::string text = std::to_string(gpus) + " x " + std::string(job.machine.gpu.title) + ": pp " +
                     std::to_string(request.pp) + ", tp " + std::to_string(job.machine.tp) +
                     ", dp " + std::to_string(request.dp);
  if (request.chunks > 1) text += ", " + std::to_string(request.chunks) + " stages per rank";
  if (job.ignores_memory && !ranks_that_lack(job).empty()) text += ", memory ignored";
  return text;
}

std::string workload_head(const WorkloadJob& job) {
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
  if (job.lengths.kind == LengthKind::kImages) {
    text +=
        "Where images differ, times do; activations and messages are those of a microbatch with "
        "all its images.\n";
  } else if (job.lengths.kind != LengthKind::kNone) {
    text +=
        "Where lengths differ, times and messages do; activations are those of a microbatch at its "
        "longest.\n";
  }
  if (job.ignores_memory && !ranks_that_lack(job).empty()) {
    text += "Memory ignored: " + lack_of_memory(job) + ".\n";
  }
  text +=
      "All sizes are of one GPU; the budget is its memory less the state (weights, gradients, "
      "optimizer).\n\n";
  return in_comment(text + workload_table(job));
}

std::vector<double> largest_activations(const WorkloadJob& job) {
  return activations_by_rank(job, larger);
}

std::vector<int> ranks_that_lack(const WorkloadJob& job) {
  const std::vector<double> least = activations_by_rank(job, together);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < least.size(); ++rank) {
    if (job.workload.budget_bytes[rank] < least[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

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

std::string lack_of_memory(const WorkloadJob& job) {
  constexpr std::size_t kMostLines = 16;
  const std::vector<double> least = activations_by_rank(job, together);
  const std::vector<int> ranks = ranks_that_lack(job);
  if (ranks.empty()) return "";
  const double memory = job.machine.gpu.memory_bytes;
  std::string text = "the job does not fit GPUs of " + fixed(memory / kGigabyte, 1) + " GB";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostLines); ++i) {
    const auto at = static_cast<std::size_t>(ranks[i]);
    const double over = least[at] - job.workload.budget_bytes[at];
    text += "\n  rank " + std::to_string(ranks[i]) + " is " + fixed(over / kGigabyte, 1) +
            " GB over: " + fixed((memory - job.workload.budget_bytes[at]) / kGigabyte, 1) +
            " GB of weights, gradients and optimizer, and " + fixed(least[at] / kGigabyte, 1) +
            " GB of activations of one microbatch";
  }
  if (ranks.size() > kMostLines) {
    text += "\n  and " + std::to_string(ranks.size() - kMostLines) + " ranks more";
  }
  text += "\n  to fit: ";
  if (job.profiled) return text + "more --pp, --layout balanced, or more --gpu-gb";
  text += "more --pp or --tp";
  if (job.request.dp > 1 && !job.request.state.distributed) text += ", --use-distributed-optimizer";
  return text + ", a shorter --seq-length, or more --gpu-gb";
}

}  // namespace rrfp
