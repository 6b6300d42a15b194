// An order with its communication: the cells of zero-bubble runtimes, and of
// torch files with SEND and RECV actions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler_core/result.h"
#include "scheduler_core/schedule.h"
#include "traces/case.h"

namespace rrfp {

enum class LaunchCellKind : std::uint8_t { kCompute, kSend, kReceive };

struct LaunchCell {
  LaunchCellKind kind = LaunchCellKind::kCompute;
  TaskId task = kNoTask;      ///< compute
  std::int32_t message = -1;  ///< send, receive: edge * microbatches + microbatch

  friend bool operator==(const LaunchCell&, const LaunchCell&) = default;
};

/// [rank][position]
using LaunchCells = std::vector<std::vector<LaunchCell>>;

/// The send (or receive) cells of what `stage` sends (or receives) for
/// microbatch `microbatch`: activations for kForward, gradients for kBackward.
/// One for each edge to another rank, none where there is none.
std::vector<LaunchCell> communication_cells(const Program& program, LaunchCellKind kind, int stage,
                                            Kind tensor, int microbatch);

/// The cells of `order` with the SEND and RECV that its author placed. The error
/// names one that the program does not have, or that stands on a wrong rank.
/// REQUIRES: `order` holds each task of the program once, on its rank, and
/// `messages` has a list for each rank.
Result<LaunchCells> given_cells(const Program& program, const Schedule& order,
                                const std::vector<std::vector<OrderedMessage>>& messages);

/// Places communication as the zero-bubble runtime does. Cells of a message
/// carry the planned end of its producer; the plan is `order` with the
/// expected durations and one message time per transfer. Sorted by (planned
/// start, communication before compute, message in order of producing rank and
/// position); then one pass from left to right moves a receive ahead of the
/// compute before it if it may arrive by that compute's planned end.
/// Tasks that the order blocks stand last, without communication.
/// REQUIRES: `order` holds each task of the program once, on its rank.
LaunchCells place_cells(const Case& input, const Schedule& order);

}  // namespace rrfp
