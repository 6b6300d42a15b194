// A model as a list of layers with what each costs: the currency between
// where costs come from (a shape, a profile) and how they are cut into stages.
//
// Costs are of one microbatch on one GPU of a tensor-parallel group. FLOPs
// count multiplications with matrices and attention; everything else (norms,
// activations, the optimizer) is in the efficiency that a machine reaches.
// Bytes follow Korthikanti et al. (arXiv 2205.05198), tensor by tensor, so that
// models with grouped queries, gated MLPs or experts are counted too; a GPT
// layer comes to their s b h (34 + 5 a s / h), and what its weight gradient
// needs to 32 s b h (Qi et al., arXiv 2401.10241).
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/workload_machine.h"
#include "traces/workload_model.h"

namespace rrfp {

enum class LayerKind : std::uint8_t {
  kPatchEmbedding,
  kVision,  ///< a transformer layer of the encoder
  kProjector,
  kEmbedding,
  kTransformer,
  kHead,      ///< final norm, matrix into the vocabulary, loss
  kProfiled,  ///< of a measured graph
};

/// A cost by how it grows with the length of a sequence.
struct Growth {
  double linear = 0;
  double quadratic = 0;  ///< attention over whole sequences

  double sum() const { return linear + quadratic; }
  Growth& operator+=(const Growth& other) {
    linear += other.linear;
    quadratic += other.quadratic;
    return *this;
  }
  friend Growth operator*(const Growth& growth, double factor) {
    return {growth.linear * factor, growth.quadratic * factor};
  }
};

/// Of the three parts of a layer's work: FLOPs, or ns.
struct LayerWork {
  Growth forward;
  Growth input_gradient;
  Growth weight_gradient;
};

struct LayerCost {
  LayerKind kind = LayerKind::kProfiled;
  std::string name;
  double parameters = 0;
  bool trained = true;
  LayerWork time_ns;
  double activation_bytes = 0;   ///< kept from forward to backward
  double weight_only_bytes = 0;  ///< of it, what only the weight gradient needs
  double stash_bytes = 0;        ///< kept from input gradient to weight gradient
  double output_bytes = 0;       ///< the message, where a stage ends here
};

/// What a microbatch holds.
struct MicrobatchShape {
  int sequences = 1;
  std::int64_t tokens = 4096;  ///< of one sequence, those of its images included
  int images = 0;              ///< of one sequence
  std::int64_t patches = 0;    ///< of one image
};

/// Work of one transformer layer over `sequences` sequences of `tokens` each.
/// `layer` counts from 0: where some layers attend within windows, which.
/// Flash attention computes the scores a second time in the backward.
LayerWork layer_flops(const TransformerShape& shape, double sequences, double tokens, int layer,
                      bool flash_attention);

/// The layers in the order in which a microbatch passes them: patches, encoder
/// and projector where the model has them and there are images; embedding,
/// layers, head. The error names the images that do not fit.
Result<std::vector<LayerCost>> model_layers(const ModelShape& model, const MicrobatchShape& batch,
                                            const Machine& machine);

}  // namespace rrfp
