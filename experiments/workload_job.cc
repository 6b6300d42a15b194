#include "experiments/workload_job.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "scheduler_core/nearest.h"
#include "traces/workload_profile.h"

namespace rrfp {

namespace {

constexpr double kDefaultLatencyUs = 10;
constexpr double kMost = 1e9;
/// What a scenario's mixture and draws of one microbatch hold.
constexpr int kMostCountedImages = 999;
constexpr int kMostDrawnSequences = 10'000;

Result<int> count(const Options& options, std::string_view name, int otherwise, int most) {
  const Result<std::int64_t> value = options.integer_or(name, otherwise, 1, most);
  if (!value.ok()) return value.error();
  return static_cast<int>(*value);
}

Result<int> needed_count(const Options& options, std::string_view name, int most) {
  if (options.flag(name)) return count(options, name, 1, most);
  return Error{"--" + std::string(name) + " is missing; expected a whole number from 1 to " +
               std::to_string(most)};
}

// A number from 0 to `most`.
Result<double> amount(const Options& options, std::string_view name, double otherwise,
                      double most) {
  const Result<double> value = options.number_or(name, otherwise, 0);
  if (!value.ok() || *value <= most) return value;
  return Error{"--" + std::string(name) + ": found " + *options.text(name) +
               "; expected a number from 0 to " + std::to_string(static_cast<std::int64_t>(most))};
}

// A word as a shell takes it.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._,:/+=-";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string text = "'";
  for (const char letter : word) {
    text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return text + "'";
}

// Without --out: the same command again makes the same scenario, wherever it is put.
std::string command_line(const Options& options, std::span<const OptionRow> rows) {
  std::string line = "rrfp init";
  for (const OptionRow& row : rows) {
    if (row.name == "out" || !options.flag(row.name)) continue;
    line += " --" + std::string(row.name);
    if (!row.argument.empty()) line += " " + quoted(*options.text(row.name));
  }
  return line;
}

Result<void> refuse(const Options& options, std::span<const std::string_view> names,
                    const std::string& why) {
  for (const std::string_view name : names) {
    if (options.flag(name)) return Error{"--" + std::string(name) + " " + why};
  }
  return {};
}

// What would have no effect is said rather than ignored.
Result<void> check_kind(const Options& options) {
  constexpr std::array<std::string_view, 5> kOfNumbers = {"forward-ms", "backward-ms", "weight-ms",
                                                          "model-gb", "activation-gb"};
  constexpr std::array<std::string_view, 13> kOfModels = {
      "efficiency",    "tp",      "micro-batch-size", "seq-length", "attention",
      "gradients",     "images",  "frozen",           "image-size", "encoder",
      "encoder-ranks", "lengths", "image-counts",
  };
  constexpr std::array<std::string_view, 1> kOfProfiles = {"weight-share"};
  constexpr std::array<std::string_view, 4> kOfImages = {"image-size", "encoder", "encoder-ranks",
                                                         "image-counts"};
  const bool model = options.flag("model");
  if (model && options.flag("layer-profile")) {
    return Error{"found --model and --layer-profile; expected one of them"};
  }
  const std::string kind = model ? "--model" : "--layer-profile";
  Result<void> fits =
      refuse(options, kOfNumbers, "does not go with " + kind + ", from which it follows");
  if (fits.ok() && !model) fits = refuse(options, kOfModels, "goes with --model");
  if (fits.ok() && model) fits = refuse(options, kOfProfiles, "goes with --layer-profile");
  if (fits.ok() && !options.flag("images")) fits = refuse(options, kOfImages, "goes with --images");
  return fits;
}

Result<void> read_machine(const Options& options, WorkloadJob& job) {
  const Result<Gpu> gpu = find_gpu(options.text_or("gpu", "h100"));
  if (!gpu.ok()) return Error{"--gpu: " + gpu.error().message};
  job.machine.gpu = *gpu;
  const Result<double> memory =
      amount(options, "gpu-gb", job.machine.gpu.memory_bytes / 1e9, kMost);
  if (!memory.ok()) return memory.error();
  job.machine.gpu.memory_bytes = *memory * 1e9;
  const Result<double> efficiency = options.number_or("efficiency", 0.5, 0);
  if (!efficiency.ok()) return efficiency.error();
  if (*efficiency < 0.001 || *efficiency > 1) {
    return Error{"--efficiency: found " + *options.text("efficiency") +
                 "; expected a share of the peak from 0.001 to 1"};
  }
  job.machine.efficiency = *efficiency;
  const Result<int> tp = count(options, "tp", 1, 64);
  if (!tp.ok()) return tp.error();
  if (*tp > kGpusOfNode) {
    return Error{"--tp: found " + std::to_string(*tp) + "; expected at most " +
                 std::to_string(kGpusOfNode) +
                 ", the GPUs of a node: a tensor-parallel group exchanges over NVLink"};
  }
  job.machine.tp = *tp;
  constexpr std::array<std::string_view, 2> kAttention = {"flash", "full"};
  const Result<std::string> attention = options.word_or("attention", "flash", kAttention);
  if (!attention.ok()) return attention.error();
  job.machine.flash_attention = *attention == "flash";
  const Result<double> network =
      amount(options, "network-gbit", job.machine.gpu.network_bytes_per_second * 8 / 1e9, 1e6);
  if (!network.ok()) return network.error();
  if (*network < 0.001) {
    return Error{"--network-gbit: found " + *options.text("network-gbit") +
                 "; expected at least 0.001"};
  }
  job.network_gbit = *network;
  job.machine.gpu.network_bytes_per_second = *network * 1e9 / 8;
  const Result<double> latency = amount(options, "latency-us", kDefaultLatencyUs, kMost);
  if (!latency.ok()) return latency.error();
  job.latency_us = *latency;
  return {};
}

Result<void> read_shape(const Options& options, WorkloadJob& job) {
  WorkloadRequest& request = job.request;
  struct Count {
    const char* name;
    int* value;
    int otherwise;  ///< 0: it must be given
    int most;
  };
  for (const Count& wanted :
       {Count{"pp", &request.pp, 0, 4096}, Count{"microbatches", &job.microbatches, 0, 65536},
        Count{"dp", &request.dp, 1, 4096}, Count{"virtual-pipeline", &request.chunks, 1, 256},
        Count{"iterations", &job.iterations, 20, 10'000'000},
        Count{"micro-batch-size", &job.batch.sequences, 1, 65536}}) {
    const Result<int> value = wanted.otherwise == 0
                                  ? needed_count(options, wanted.name, wanted.most)
                                  : count(options, wanted.name, wanted.otherwise, wanted.most);
    if (!value.ok()) return value.error();
    *wanted.value = *value;
  }
  if (request.chunks > 1 && job.microbatches % request.pp != 0) {
    return Error{"--microbatches: found " + std::to_string(job.microbatches) +
                 "; interleaved stages (--virtual-pipeline) need a multiple of --pp, " +
                 std::to_string(request.pp)};
  }
  request.layout = options.text_or("layout", "even");
  constexpr std::array<std::string_view, 2> kGradients = {"fp32", "bf16"};
  const Result<std::string> gradients = options.word_or("gradients", "fp32", kGradients);
  if (!gradients.ok()) return gradients.error();
  request.state.gradient = *gradients == "fp32" ? 4 : 2;
  // Profiles are of fp32 training: weights, gradients, two moments.
  if (job.profiled) request.state = {4, 4, 8, false};
  job.ignores_memory = options.flag("ignore-memory");
  request.state.distributed = options.flag("use-distributed-optimizer");
  return {};
}

Result<void> read_encoder(const Options& options, WorkloadJob& job) {
  constexpr std::array<std::string_view, 2> kPlacements = {"chain", "side-by-side"};
  const Result<std::string> placement = options.word_or("encoder", "chain", kPlacements);
  if (!placement.ok()) return placement.error();
  job.request.encoder =
      *placement == "chain" ? EncoderPlacement::kChain : EncoderPlacement::kSideBySide;
  if (options.flag("encoder-ranks")) {
    const Result<int> ranks = count(options, "encoder-ranks", 1, 4096);
    if (!ranks.ok()) return ranks.error();
    job.request.encoder_ranks = *ranks;
  }
  const Result<std::vector<std::string>> frozen = options.list("frozen");
  if (!frozen.ok()) return frozen.error();
  constexpr std::array<std::string_view, 2> kParts = {"encoder", "language"};
  for (const std::string& part : *frozen) {
    if (std::find(kParts.begin(), kParts.end(), part) == kParts.end()) {
      return not_one_of("--frozen", part, kParts);
    }
    (part == "encoder" ? job.request.frozen_encoder : job.request.frozen_language) = true;
  }
  return {};
}

Result<void> read_batch(const Options& options, const ModelShape& model, WorkloadJob& job) {
  const Result<int> tokens = count(options, "seq-length", 4096, 1 << 24);
  if (!tokens.ok()) return tokens.error();
  job.batch.tokens = *tokens;
  const Result<std::int64_t> images = options.integer_or("images", 0, 0, 1 << 20);
  if (!images.ok()) return images.error();
  job.batch.images = static_cast<int>(*images);
  const Result<int> size = count(options, "image-size", 448, 1 << 16);
  if (!size.ok()) return size.error();
  if (job.batch.images == 0 || !model.vision) return {};
  const int cell = model.vision->patch * model.vision->merge;
  if (*size % cell != 0) {
    return Error{"--image-size: found " + std::to_string(*size) + "; expected a multiple of " +
                 std::to_string(cell) + ", the pixels along one token"};
  }
  const std::int64_t side = *size / model.vision->patch;
  job.batch.patches = side * side;
  job.image_tokens = job.batch.patches / (model.vision->merge * model.vision->merge);
  return {};
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// FILE[:COLUMN]. What is a file as it stands has no column, however many colons are in its name.
Result<void> read_lengths_file(const std::string& text, Lengths& lengths) {
  std::string path = text;
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos && !is_file(text)) {
    path = text.substr(0, colon);
    lengths.column = text.substr(colon + 1);
  }
  // Scenarios look beside themselves for files, so a path that stays right is put in.
  std::error_code failed;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  if (path.empty() || failed || !is_file(path)) {
    return Error{"--lengths: found " + in_quotes(path) +
                 ", which is no file; expected longtail or a file of token lengths"};
  }
  lengths.kind = LengthKind::kFile;
  lengths.file = absolute.lexically_normal().string();
  return {};
}

Result<void> read_lengths(const Options& options, WorkloadJob& job) {
  const std::optional<std::string> lengths = options.text("lengths");
  constexpr std::array<std::string_view, 1> kCounts = {"burst"};
  const Result<std::string> counts = options.word_or("image-counts", "burst", kCounts);
  if (!counts.ok()) return counts.error();
  if (options.flag("image-counts")) {
    if (job.batch.images == 0) return Error{"--image-counts needs --images of at least 1"};
    if (job.batch.images > kMostCountedImages) {
      return Error{"--images: found " + std::to_string(job.batch.images) +
                   "; with --image-counts expected at most " + std::to_string(kMostCountedImages)};
    }
    job.lengths.kind = LengthKind::kImages;
  }
  if ((lengths || options.flag("image-counts")) && job.batch.sequences > kMostDrawnSequences) {
    return Error{"--micro-batch-size: found " + std::to_string(job.batch.sequences) +
                 "; where sequences differ expected at most " +
                 std::to_string(kMostDrawnSequences)};
  }
  if (!lengths) return {};
  if (job.batch.images > 0) {
    return Error{"--lengths goes with text alone; --image-counts lets images differ"};
  }
  if (*lengths == "longtail") {
    job.lengths.kind = LengthKind::kLongTail;
    return {};
  }
  return read_lengths_file(*lengths, job.lengths);
}

Result<void> read_layers(const Options& options, WorkloadJob& job) {
  if (job.profiled) {
    const Result<double> share = options.number_or("weight-share", 0.5, 0);
    if (!share.ok()) return share.error();
    if (*share > 1) {
      return Error{"--weight-share: found " + *options.text("weight-share") +
                   "; expected a share from 0 to 1"};
    }
    job.source = *options.text("layer-profile");
    job.title = job.source.substr(job.source.rfind('/') + 1);
    Result<std::vector<LayerCost>> layers = read_layer_profile(job.source, *share);
    if (!layers.ok()) return layers.error();
    job.request.layers = *std::move(layers);
    return {};
  }
  const Result<ModelShape> model = find_model(*options.text("model"));
  if (!model.ok()) return Error{"--model: " + model.error().message};
  job.title = model->title;
  job.source = model->source;
  if (Result<void> read = read_batch(options, *model, job); !read.ok()) return read.error();
  if (model->language.kv_heads % job.machine.tp != 0) {
    return Error{"--tp: found " + std::to_string(job.machine.tp) + "; expected a divisor of " +
                 std::to_string(model->language.kv_heads) + ", the key and value heads of " +
                 std::string(model->name)};
  }
  Result<std::vector<LayerCost>> layers = model_layers(*model, job.batch, job.machine);
  if (!layers.ok()) return layers.error();
  job.request.layers = *std::move(layers);
  return {};
}

}  // namespace

Result<bool> describes_workload(const Options& options) {
  if (options.flag("model") || options.flag("layer-profile")) return true;
  for (const OptionRow& row : kWorkloadOptions) {
    if (options.flag(row.name)) {
      return Error{"--" + std::string(row.name) + " goes with --model or --layer-profile"};
    }
  }
  return false;
}

Result<WorkloadJob> read_workload_job(const Options& options, std::span<const OptionRow> rows) {
  if (Result<void> kind = check_kind(options); !kind.ok()) return kind.error();
  WorkloadJob job;
  job.command = command_line(options, rows);
  job.profiled = options.flag("layer-profile");
  for (const auto& read : {read_machine, read_shape, read_encoder, read_layers, read_lengths}) {
    if (Result<void> done = read(options, job); !done.ok()) return done.error();
  }
  Result<Worlds> worlds = read_worlds(options);
  if (!worlds.ok()) return worlds.error();
  job.worlds = *std::move(worlds);
  job.request.gpu = job.machine.gpu;
  Result<Workload> workload = make_workload(job.request);
  if (!workload.ok()) return workload.error();
  job.workload = *std::move(workload);
  return job;
}

}  // namespace rrfp
