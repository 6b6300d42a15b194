// The launch-queue network mode: what today's runtimes make of a fixed order.
#pragma once

#include <cstdint>

#include "scheduler_core/result.h"
#include "scheduler_core/schedule.h"
#include "sim/launch_cells.h"
#include "sim/simulate.h"
#include "traces/case.h"
#include "traces/prepared_case.h"
#include "traces/simulation_result.h"

namespace rrfp {

/// Which runtime carries out the order.
enum class LaunchLowering : std::uint8_t {
  /// Batched where the program is a chain with one stage per rank, backward
  /// is not split, and the order has a shape that Megatron's non-interleaved
  /// runtime knows; per peer otherwise.
  kAutomatic,
  kBatched,
  kPerPeer,
};

struct LaunchOptions {
  LaunchLowering lowering = LaunchLowering::kAutomatic;
  /// The order with its SEND and RECV cells, of a file that has them; empty:
  /// the per-peer lowering places them. Not used by the batched one.
  LaunchCells cells;
};

/// The result of `input` run in `order`.
///
/// Latencies, bytes, tensor-parallel costs and queue_depth have no part in
/// this mode. Root inputs hold the host back, dispatch_ns is host time before
/// each compute, memory counts as in eager. peak_inbox_bytes is 0. Idle time
/// is drain, fill, dispatch, or else communication; a rank whose order cannot
/// go on for a reason of its own idles for order or memory from there on.
///
/// REQUIRES: `input` is arranged, its budgets are at least least_budget, and
/// `order` holds each task of input.program once, on its rank (fit_program).
/// The error names a window other than 1, a link_delay_ns entry that is out
/// of range or repeated, or what the lowering does not take.
Result<SimulationResult> simulate_launch_queue(const Case& input, const Schedule& order,
                                               const SimulateOptions& options = {},
                                               const LaunchOptions& launch = {});

/// The same for a prepared case, whose checks are done. Where `launch` has no
/// cells, the SEND and RECV of its hint's order are taken, if it has any.
Result<SimulationResult> simulate_launch_queue(const PreparedCase& prepared,
                                               const SimulateOptions& options = {},
                                               const LaunchOptions& launch = {});

}  // namespace rrfp
