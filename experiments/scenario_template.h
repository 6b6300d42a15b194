// A commented scenario to start from, written from the few numbers that a
// person knows of a job.
//
// Thread safety: pure function.
#pragma once

#include <optional>
#include <string>

#include "experiments/variability_option.h"

namespace rrfp {

struct JobNumbers {
  int ranks = 0;
  int microbatches = 0;
  double forward_ms = 0;                ///< of one stage and microbatch
  double backward_ms = 0;               ///< the whole of it
  std::optional<double> weight_ms;      ///< of the backward, the weight gradient; none: half
  double gpu_gb = 0;                    ///< memory of a device
  std::optional<double> model_gb;       ///< of it weights, gradients, optimizer; none: 40 %
  std::optional<double> activation_gb;  ///< of one stage and microbatch; none: 1f1b just fits
  std::optional<double> latency_us;     ///< of a message; none: 50
  Worlds worlds;                        ///< empty: some variability to edit
};

/// The text of a scenario file. What was not given is assumed, and says so.
/// REQUIRES: memory is left for activations.
std::string scenario_template(const JobNumbers& job);

}  // namespace rrfp
