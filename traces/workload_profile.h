// Layers of a measured model: the graph of a profile as PipeDream's profiler
// writes it (Narayanan et al., SOSP'19).
//
//   node4 -- Embedding(32320, 1024) -- forward_compute_time=0.073, backward_compute_time=6.949,
//       activation_size=6291456.0, parameter_size=132382720.000            (one line)
//   <tab>node4 -- node6
//
// Times are in ms, sizes in bytes, of one minibatch in fp32; [a; b] is a sum.
//
// Thread safety: pure functions but for the file.
#pragma once

#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/workload_layers.h"

namespace rrfp {

/// The layers in an order that the graph allows (of those that may come next,
/// the one with the lowest number). What a profile does not say:
///  - the backward is not split: `weight_share` of it is the weight gradient
///    in a layer with parameters, nothing elsewhere;
///  - a message after a layer is everything that a later layer reads from it or
///    one before it: what skips a stage is passed on through it;
///  - a layer keeps its output until its backward; one that takes no time (an
///    input, a view) keeps nothing.
/// The error names the line, or a node that needs itself.
Result<std::vector<LayerCost>> read_layer_profile(const std::string& path, double weight_share);

}  // namespace rrfp
