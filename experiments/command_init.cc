// rrfp init: writes a commented scenario to start from.
#include <algorithm>
#include <array>
#include <ostream>

#include "experiments/command.h"
#include "experiments/output_file.h"
#include "experiments/preset_report.h"
#include "experiments/scenario_template.h"
#include "experiments/sweep.h"
#include "experiments/workload_report.h"
#include "experiments/workload_scenario.h"
#include "traces/atomic_file.h"
#include "traces/scenario_file.h"
#include "traces/scenario_resolve.h"

namespace rrfp {

namespace {

constexpr std::array kCommonOptions = {
    kVariabilityRow,
    OptionRow{"pp", "P", "pipeline ranks, 1 to 4096"},
    OptionRow{"microbatches", "M", "microbatches of an iteration, 1 to 65536"},
    OptionRow{"gpu-gb", "GB", "memory of a device (default: the GPU's, or 80)"},
    OptionRow{"latency-us", "US", "latency of a message (default 10 with a model, or 50)"},
    OptionRow{"out", "FILE", "write to FILE, which must not exist, instead of printing"},
};

// Of a job by its measured times.
constexpr std::array kNumberOptions = {
    OptionRow{"forward-ms", "MS", "forward of one stage and microbatch"},
    OptionRow{"backward-ms", "MS", "the whole backward of one stage and microbatch"},
    OptionRow{"weight-ms", "MS", "of it, the weight gradient (default: half, said so in the file)"},
    OptionRow{"model-gb", "GB", "of it weights, gradients and optimizer (default: 40 %)"},
    OptionRow{"activation-gb", "GB",
              "activations of one stage and microbatch (default: 1f1b just fits)"},
};

constexpr auto kOptions = [] {
  std::array<OptionRow, kCommonOptions.size() + kNumberOptions.size() + kWorkloadOptions.size()>
      rows;
  auto end = std::copy(kWorkloadOptions.begin(), kWorkloadOptions.end(), rows.begin());
  end = std::copy(kCommonOptions.begin(), kCommonOptions.end(), end);
  std::copy(kNumberOptions.begin(), kNumberOptions.end(), end);
  return rows;
}();

constexpr double kMost = 1e9;

Result<int> count(const Options& options, std::string_view name, std::int64_t most) {
  const Result<std::optional<std::int64_t>> value = options.integer(name, 1, most);
  if (!value.ok()) return value.error();
  if (*value) return static_cast<int>(**value);
  return Error{"--" + std::string(name) + " is missing; expected a whole number from 1 to " +
               std::to_string(most)};
}

// A number from 0 to kMost.
Result<std::optional<double>> amount(const Options& options, std::string_view name) {
  const Result<std::optional<double>> value = options.number(name, 0);
  if (!value.ok()) return value.error();
  if (*value && **value > kMost) {
    return Error{"--" + std::string(name) + ": found " + *options.text(name) +
                 "; expected a number of at most 1000000000"};
  }
  return *value;
}

Result<double> needed(const Options& options, std::string_view name) {
  const Result<std::optional<double>> value = amount(options, name);
  if (!value.ok()) return value.error();
  if (*value) return **value;
  return Error{"--" + std::string(name) + " is missing; expected a number of at least 0"};
}

Result<void> read_times(const Options& options, JobNumbers& job) {
  if (!options.text("forward-ms") && !options.text("backward-ms")) {
    return Error{
        "--model NAME is missing (`rrfp models` lists them), or --layer-profile FILE, or the times "
        "of a stage, --forward-ms and --backward-ms; each with --pp and --microbatches"};
  }
  const Result<int> ranks = count(options, "pp", 4096);
  if (!ranks.ok()) return ranks.error();
  job.ranks = *ranks;
  const Result<int> microbatches = count(options, "microbatches", 65536);
  if (!microbatches.ok()) return microbatches.error();
  job.microbatches = *microbatches;
  const Result<double> forward = needed(options, "forward-ms");
  if (!forward.ok()) return forward.error();
  job.forward_ms = *forward;
  const Result<double> backward = needed(options, "backward-ms");
  if (!backward.ok()) return backward.error();
  job.backward_ms = *backward;
  const Result<std::optional<double>> weight = amount(options, "weight-ms");
  if (!weight.ok()) return weight.error();
  if (*weight && **weight > job.backward_ms) {
    return Error{"--weight-ms: found " + *options.text("weight-ms") +
                 "; expected at most --backward-ms, of which it is a part"};
  }
  job.weight_ms = *weight;
  const Result<std::optional<double>> latency = amount(options, "latency-us");
  if (!latency.ok()) return latency.error();
  job.latency_us = *latency;
  return {};
}

Result<void> read_memory(const Options& options, JobNumbers& job) {
  const Result<std::optional<double>> gpu = amount(options, "gpu-gb");
  if (!gpu.ok()) return gpu.error();
  job.gpu_gb = gpu->value_or(80);
  const Result<std::optional<double>> model = amount(options, "model-gb");
  if (!model.ok()) return model.error();
  job.model_gb = *model;
  const Result<std::optional<double>> activation = amount(options, "activation-gb");
  if (!activation.ok()) return activation.error();
  job.activation_gb = *activation;
  const double left_gb = job.gpu_gb - job.model_gb.value_or(0);
  if (left_gb <= 0) {
    return Error{"--model-gb leaves no memory for activations; expected less than --gpu-gb"};
  }
  if (job.activation_gb && *job.activation_gb > left_gb) {
    return Error{"--activation-gb: found " + *options.text("activation-gb") +
                 "; expected at most what --gpu-gb leaves after --model-gb"};
  }
  return {};
}

/// What is written, and what is said about it.
struct Made {
  std::string scenario;
  std::string table;  ///< empty: none
};

Result<Made> from_numbers(const Options& options) {
  JobNumbers job;
  if (Result<void> read = read_times(options, job); !read.ok()) return read.error();
  if (Result<void> read = read_memory(options, job); !read.ok()) return read.error();
  Result<Worlds> worlds = read_worlds(options);
  if (!worlds.ok()) return worlds.error();
  job.worlds = *std::move(worlds);
  return Made{scenario_template(job), ""};
}

Result<Made> from_workload(const Options& options) {
  const Result<WorkloadJob> job = read_workload_job(options, kOptions);
  if (!job.ok()) return job.error();
  // Without a limit every schedule seems possible, so that is for the user to say.
  if (const std::string lack = lack_of_memory(*job); !lack.empty() && !job->ignores_memory) {
    return Error{lack + "\n  --ignore-memory writes it without limits on memory"};
  }
  return Made{workload_scenario(*job), workload_table(*job)};
}

// Reads what was written as `rrfp sweep` does, all points of its grid: a scenario that the program
// would refuse is never handed out.
Result<std::vector<GridPoint>> read_back(const std::string& text) {
  const Result<JsonDocument> document =
      parse_json(text, "the scenario that this would make", {.comments = true});
  if (!document.ok()) return document.error();
  Result<std::vector<GridPoint>> points = expand_grid(*document);
  if (!points.ok()) return points.error();
  for (const GridPoint& point : *points) {
    if (Result<void> size = check_iteration_size(point.scenario); !size.ok()) return size.error();
    const Result<ScenarioResolver> resolver = ScenarioResolver::create(point.scenario);
    if (!resolver.ok()) return Error{document->file + ": " + resolver.error().message};
    // All policies meet this world; what may be too large in it is so with any.
    const Result<Case> world = resolver->resolve(0, 0, 0);
    if (!world.ok()) return Error{document->file + ": " + world.error().message};
  }
  return points;
}

// What is to be said of the presets that the user asked for.
std::string preset_notes(const std::vector<GridPoint>& points, bool healthy_is_assumed) {
  Scenario all;
  for (const GridPoint& point : points) {
    for (const VariabilityModel& model : point.scenario.variability) {
      const ModelOrigin* origin = origin_of(model);
      if (healthy_is_assumed && origin != nullptr && origin->preset == kAssumedWorld) continue;
      all.variability.push_back(model);
    }
  }
  return preset_note(all);
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const Result<bool> workload = describes_workload(options);
  if (!workload.ok()) return workload.error();
  const Result<Made> made = *workload ? from_workload(options) : from_numbers(options);
  if (!made.ok()) return made.error();
  const Result<std::vector<GridPoint>> points = read_back(made->scenario);
  if (!points.ok()) return points.error();
  const std::optional<std::string> out = options.text("out");
  if (out) {
    if (Result<void> free = check_new_file(*out, "--out"); !free.ok()) return free.error();
  }
  terminal.err << preset_notes(*points, !options.flag("variability"));
  if (!out) {
    terminal.out << made->scenario;
    return ExitStatus::kDone;
  }
  if (Result<void> written = write_file_atomically(*out, made->scenario); !written.ok()) {
    return written.error();
  }
  if (!made->table.empty()) terminal.out << made->table << "\n";
  terminal.out << "wrote " << *out << "; `rrfp sweep " << *out << "` runs it\n";
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kInitCommand;
const Command kInitCommand = {
    "init",
    "writes a commented scenario to start from",
    "",
    "From a model (--model) or a profile (--layer-profile): times and memory of each stage follow\n"
    "from its layers. Otherwise from the times that you give. What is not given is assumed, and\n"
    "marked as such in the file.",
    "rrfp init --model llama3-8b --gpu h100 --pp 8 --tp 2 --dp 4 --microbatches 64 "
    "--seq-length 8192 --out job.json\n"
    "  rrfp init --pp 8 --microbatches 64 --forward-ms 18.5 --backward-ms 27.4 --gpu-gb 80 "
    "--out job.json",
    kOptions,
    0,
    run,
};

}  // namespace rrfp
