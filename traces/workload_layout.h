// How a list of layers is cut into stages: contiguous runs, in order.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/workload_layers.h"

namespace rrfp {

/// Stage i holds the layers from ends[i - 1] (the first: 0) to ends[i] - 1.
using StageEnds = std::vector<std::size_t>;

/// As many layers in each stage as in any other, or one more in the first
/// ones. Layers are those of a transformer or a profile: what stands before
/// them (embedding, patches) goes with the first, what stands after them
/// (projector, head) with the last. The error says how many stages fit.
Result<StageEnds> even_layout(std::span<const LayerCost> layers, int stages);

/// The cut whose costliest stage costs least; of those the one with the
/// smallest sum of squares. Exact, in O(stages n log n) for n layers. No stage
/// is empty; the error says how many stages fit. REQUIRES: costs are at least 0.
Result<StageEnds> balanced_layout(std::span<const double> costs, int stages);

/// A layout as Megatron-LM takes it (--pipeline-model-parallel-layout):
/// "Et*3|(tt|)*2tL". E embedding, t transformer layer, L loss; | ends a stage,
/// x*n and (...)*n repeat, commas and spaces are for the eye, stages may be
/// empty. Stages are in the order of the model, so with several chunks all
/// ranks' first chunks come first. REQUIRES: layers are an embedding, transformer
/// layers and a head, possibly after a projector, which goes with E.
/// The error names the character.
Result<StageEnds> parse_layout(std::string_view text, std::span<const LayerCost> layers,
                               int stages);

}  // namespace rrfp
