// A workload: the stages of a training job with what each costs, made from a
// list of layers and how the job is spread over GPUs. Everything is of one GPU
// and one microbatch.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler_core/program.h"
#include "scheduler_core/result.h"
#include "traces/workload_layers.h"

namespace rrfp {

/// Bytes per parameter. bf16 weights with fp32 gradients take 18 bytes (2, 4, and
/// master weights and two moments in fp32), with bf16 gradients 16.
struct StateBytes {
  double weight = 2;
  double gradient = 4;
  double optimizer = 12;
  bool distributed = false;  ///< each replica holds its share of the optimizer
};

enum class EncoderPlacement : std::uint8_t {
  kChain,       ///< cut into stages before those of the language model
  kSideBySide,  ///< whole copies, each with its share of the images: as many roots, one join
};

struct WorkloadRequest {
  std::vector<LayerCost> layers;
  Gpu gpu;
  int pp = 1;
  int chunks = 1;  ///< stages per rank, looped: stage = chunk * pp + rank
  int dp = 1;
  std::string layout = "even";  ///< or "balanced", or Megatron's string for the language model
  EncoderPlacement encoder = EncoderPlacement::kChain;
  /// Ranks that hold the encoder, the first ones; none: one, or, in a balanced
  /// chain, wherever the cut falls.
  std::optional<int> encoder_ranks;
  bool frozen_encoder = false;   ///< not the projector
  bool frozen_language = false;  ///< embedding and head included
  StateBytes state;
};

struct WorkloadStage {
  StageSpec spec;
  std::string contents;   ///< "E t*4"
  double parameters = 0;  ///< of one GPU
  LayerWork time_ns;      ///< without what frozen layers need not do
  LayerWork encoder_ns;   ///< of it, what goes with images: encoder and projector
  double activation_bytes = 0;
  double stash_bytes = 0;  ///< of it, or less: kept for the weight gradient
  double output_bytes = 0;
  double state_bytes = 0;  ///< weights, gradients, optimizer
  double gradient_sync_ns = 0;
  double optimizer_ns = 0;
};

struct Workload {
  int ranks = 0;
  std::vector<WorkloadStage> stages;
  /// By rank: what the state leaves of a GPU's memory; not above 0 where it
  /// does not fit.
  std::vector<double> budget_bytes;
  double optimizer_ns = 0;  ///< of the rank that takes longest
};

/// Gradients of a frozen layer are not computed; a stage without a trained
/// layer has an input gradient only where a trained layer comes before it. A
/// frozen encoder leaves the projector to the first stage of the language
/// model, so that its own stages have no backward. Gradients are summed over
/// the replicas by a ring (for a distributed optimizer: reduced and scattered,
/// and weights gathered), at the bandwidth of the GPU's network.
/// The error names the option that does not fit.
Result<Workload> make_workload(const WorkloadRequest& request);

}  // namespace rrfp
