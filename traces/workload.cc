#include "traces/workload.h"

#include <algorithm>
#include <span>

#include "traces/workload_layout.h"

namespace rrfp {

namespace {

bool of_encoder(LayerKind kind) {
  return kind == LayerKind::kPatchEmbedding || kind == LayerKind::kVision;
}

std::string_view letter_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::kPatchEmbedding:
      return "patches";
    case LayerKind::kVision:
      return "v";
    case LayerKind::kProjector:
      return "projector";
    case LayerKind::kEmbedding:
      return "E";
    case LayerKind::kTransformer:
      return "t";
    case LayerKind::kHead:
      return "L";
    case LayerKind::kProfiled:
      return "node";
  }
  return "";
}

// "E t*4": runs of equal layers.
std::string contents_of(std::span<const LayerCost> layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i;
    while (end < layers.size() && layers[end].kind == layers[i].kind) ++end;
    text += (text.empty() ? "" : " ") + std::string(letter_of(layers[i].kind));
    if (end - i > 1) text += "*" + std::to_string(end - i);
    i = end;
  }
  return text;
}

/// Layers [begin, end) of the list, as one stage.
struct Section {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Adds layers to a stage one after the other. What frozen layers need not do
/// and keep is left out.
class StageSum {
 public:
  /// `trained_before`: a trained layer stands in a stage before this one.
  explicit StageSum(bool trained_before) : trained_before_(trained_before) {}

  void add(const LayerCost& layer) {
    const bool gradient_passes = trained_before_ || trained_here_;
    const auto spend = [&layer, gradient_passes](LayerWork& time) {
      time.forward += layer.time_ns.forward;
      if (gradient_passes) time.input_gradient += layer.time_ns.input_gradient;
      if (layer.trained) time.weight_gradient += layer.time_ns.weight_gradient;
    };
    spend(stage_.time_ns);
    if (of_encoder(layer.kind) || layer.kind == LayerKind::kProjector) spend(stage_.encoder_ns);
    if (layer.trained) {
      stage_.stash_bytes += layer.stash_bytes;
      trained_parameters_ += layer.parameters;
      stage_.activation_bytes += layer.activation_bytes;
    } else if (gradient_passes) {
      stage_.activation_bytes += layer.activation_bytes - layer.weight_only_bytes;
    } else {
      // Nothing is kept: what one layer needs while it runs.
      working_bytes_ = std::max(working_bytes_, layer.activation_bytes);
    }
    stage_.parameters += layer.parameters;
    stage_.output_bytes = layer.output_bytes;
    trained_here_ = trained_here_ || layer.trained;
  }

  /// `gpus`: how many hold the same weights.
  WorkloadStage finish(const WorkloadRequest& job, int gpus) && {
    const StateBytes& bytes = job.state;
    const double owners = bytes.distributed ? gpus : 1;
    stage_.activation_bytes = std::max(stage_.activation_bytes, working_bytes_);
    stage_.stash_bytes = std::min(stage_.stash_bytes, stage_.activation_bytes);
    stage_.spec.backward = trained_here_     ? Backward::kFull
                           : trained_before_ ? Backward::kInput
                                             : Backward::kNone;
    stage_.state_bytes = stage_.parameters * bytes.weight +
                         trained_parameters_ * (bytes.gradient + bytes.optimizer / owners);
    const double sent = bytes.gradient + (bytes.distributed ? bytes.weight : bytes.gradient);
    stage_.gradient_sync_ns =
        1e9 * trained_parameters_ * sent * (gpus - 1) / gpus / job.gpu.network_bytes_per_second;
    // The optimizer reads gradients, reads and writes its own state, writes weights.
    const double touched = bytes.gradient + 2 * bytes.optimizer + bytes.weight;
    stage_.optimizer_ns =
        1e9 * trained_parameters_ / owners * touched / job.gpu.memory_bytes_per_second;
    return std::move(stage_);
  }

  bool trained() const { return trained_before_ || trained_here_; }

 private:
  WorkloadStage stage_;
  bool trained_before_;
  bool trained_here_ = false;
  double trained_parameters_ = 0;
  double working_bytes_ = 0;
};

// What each layer takes in all, without what frozen ones need not do.
std::vector<double> costs_of(std::span<const LayerCost> layers) {
  std::vector<double> costs;
  bool gradient_passes = false;
  for (const LayerCost& layer : layers) {
    const LayerWork& time = layer.time_ns;
    double cost = time.forward.sum();
    if (gradient_passes) cost += time.input_gradient.sum();
    if (layer.trained) cost += time.weight_gradient.sum();
    costs.push_back(cost);
    gradient_passes = gradient_passes || layer.trained;
  }
  return costs;
}

// Cuts the layers of `whole` into stages.
Result<void> append(std::vector<Section>& sections, const Section& whole,
                    std::span<const LayerCost> layers, const std::string& layout, int stages) {
  const std::span<const LayerCost> own = layers.subspan(whole.begin, whole.end - whole.begin);
  const auto cut = [&]() -> Result<StageEnds> {
    if (layout == "even") return even_layout(own, stages);
    if (layout != "balanced") return parse_layout(layout, own, stages);
    const std::vector<double> costs = costs_of(layers);
    return balanced_layout(std::span(costs).subspan(whole.begin, own.size()), stages);
  };
  const Result<StageEnds> ends = cut();
  if (!ends.ok()) return ends.error();
  std::size_t begin = whole.begin;
  for (const std::size_t end : *ends) {
    sections.push_back({begin, whole.begin + end});
    begin = whole.begin + end;
  }
  return {};
}

// How many ranks the encoder has to itself; 0: it has none, or shares them.
Result<int> encoder_ranks(const WorkloadRequest& job, std::size_t encoder_layers) {
  if (encoder_layers == 0) {
    if (job.encoder_ranks) return Error{"ranks for an encoder are given, but there are no images"};
    return 0;
  }
  if (job.chunks > 1) {
    return Error{"a model with an encoder has one stage per rank; found " +
                 std::to_string(job.chunks) + " chunks"};
  }
  const bool anywhere = job.layout == "balanced" && job.encoder == EncoderPlacement::kChain;
  const int ranks = job.encoder_ranks.value_or(anywhere ? 0 : 1);
  if (ranks >= job.pp || (ranks == 0 && !anywhere)) {
    return Error{"found " + std::to_string(ranks) + " ranks for the encoder of " +
                 std::to_string(job.pp) +
                 " in all; expected at least 1 for it and 1 for the language model"};
  }
  return ranks;
}

// The layers with what is frozen marked, and the share of images that a copy of the encoder has.
std::vector<LayerCost> prepared_layers(const WorkloadRequest& job, std::size_t* encoder_layers) {
  std::vector<LayerCost> layers = job.layers;
  *encoder_layers = 0;
  for (LayerCost& layer : layers) {
    const bool encoder = of_encoder(layer.kind);
    if (encoder) ++*encoder_layers;
    if (encoder && job.frozen_encoder) layer.trained = false;
    const bool language = layer.kind == LayerKind::kEmbedding ||
                          layer.kind == LayerKind::kTransformer || layer.kind == LayerKind::kHead;
    if (language && job.frozen_language) layer.trained = false;
  }
  // A trained encoder sends tokens of the language model; a frozen one leaves that to it.
  if (*encoder_layers > 0 && !job.frozen_encoder) ++*encoder_layers;
  return layers;
}

LayerCost shared_by(LayerCost layer, int copies) {
  const double share = 1.0 / copies;
  LayerWork& time = layer.time_ns;
  time = {time.forward * share, time.input_gradient * share, time.weight_gradient * share};
  layer.activation_bytes *= share;
  layer.weight_only_bytes *= share;
  layer.stash_bytes *= share;
  layer.output_bytes *= share;
  return layer;
}

WorkloadStage summed(std::span<const LayerCost> layers, const WorkloadRequest& job, int copies,
                     double message_before, bool* trained) {
  StageSum sum(*trained);
  for (const LayerCost& layer : layers) sum.add(copies > 1 ? shared_by(layer, copies) : layer);
  *trained = sum.trained();
  WorkloadStage stage = std::move(sum).finish(job, job.dp * copies);
  stage.contents = layers.empty() ? "-" : contents_of(layers);
  if (layers.empty()) stage.output_bytes = message_before;
  return stage;
}

void place_side_by_side(std::span<const LayerCost> encoder, const WorkloadRequest& job, int ranks,
                        Workload& out, bool* trained) {
  bool trained_encoder = false;
  for (int rank = 0; rank < ranks; ++rank) {
    trained_encoder = false;
    WorkloadStage stage = summed(encoder, job, ranks, 0, &trained_encoder);
    stage.spec.rank = rank;
    out.stages.push_back(std::move(stage));
  }
  *trained = trained_encoder;
}

// What the ranks have left, and the slowest optimizer.
void add_ranks(const WorkloadRequest& job, Workload& out) {
  out.budget_bytes.assign(static_cast<std::size_t>(out.ranks), job.gpu.memory_bytes);
  std::vector<double> optimizer_ns(static_cast<std::size_t>(out.ranks), 0);
  for (const WorkloadStage& stage : out.stages) {
    const auto rank = static_cast<std::size_t>(stage.spec.rank);
    out.budget_bytes[rank] -= stage.state_bytes;
    optimizer_ns[rank] += stage.optimizer_ns;
  }
  out.optimizer_ns = *std::max_element(optimizer_ns.begin(), optimizer_ns.end());
}

}  // namespace

Result<Workload> make_workload(const WorkloadRequest& job) {
  std::size_t encoder_layers = 0;
  const std::vector<LayerCost> layers = prepared_layers(job, &encoder_layers);
  const Result<int> encoder = encoder_ranks(job, encoder_layers);
  if (!encoder.ok()) return encoder.error();
  const bool apart = *encoder > 0;
  const bool side_by_side = apart && job.encoder == EncoderPlacement::kSideBySide;

  Workload out;
  out.ranks = job.pp;
  bool trained = false;
  std::vector<Section> sections;
  if (side_by_side) {
    place_side_by_side(std::span(layers).first(encoder_layers), job, *encoder, out, &trained);
  } else if (apart) {
    // A given layout speaks of the language model only.
    const std::string layout = job.layout == "balanced" ? "balanced" : "even";
    if (Result<void> added = append(sections, {0, encoder_layers}, layers, layout, *encoder);
        !added.ok()) {
      return Error{"encoder: " + added.error().message};
    }
  }
  const Section rest{apart ? encoder_layers : 0, layers.size()};
  const int stages = (job.pp - *encoder) * job.chunks;
  if (Result<void> added = append(sections, rest, layers, job.layout, stages); !added.ok()) {
    return added.error();
  }
  const int roots = static_cast<int>(out.stages.size());
  for (const Section& section : sections) {
    const int number = static_cast<int>(out.stages.size());
    const double message_before = number == 0 ? 0 : out.stages.back().output_bytes;
    WorkloadStage stage =
        summed(std::span(layers).subspan(section.begin, section.end - section.begin), job, 1,
               message_before, &trained);
    stage.spec.rank = number % job.pp;
    if (number == roots) {
      for (int root = 0; root < roots; ++root) stage.spec.predecessors.push_back(root);
    } else {
      stage.spec.predecessors = {number - 1};
    }
    out.stages.push_back(std::move(stage));
  }
  add_ranks(job, out);
  return out;
}

}  // namespace rrfp
