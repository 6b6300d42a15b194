// The launch program of zero-bubble runtimes: an entry for each message, on a
// stream per peer.
//
//  1. Communication cells accumulate. They are flushed when the next cell is
//     not communication, or when the next compute cell consumes this receive.
//     A flush posts send_prev, recv_prev, send_next, recv_next in that order
//     (prev: the peer is a lower rank).
//  2. A compute with inputs from other ranks first waits for every operation
//     of the flushes that carried its receives.
//  3. The W after the last other cell are one compute.
//  4. At the end the rank waits for all communication.
#pragma once

#include "scheduler_core/result.h"
#include "sim/launch_cells.h"
#include "sim/launch_program.h"
#include "traces/case.h"

namespace rrfp {

/// REQUIRES: `cells` hold each task of the program once, on its rank. The
/// error names a message that has two sends or two receives, or stands on the
/// wrong rank. One that lacks an end is no error: who waits for it blocks.
Result<LaunchProgram> lower_per_peer(const Case& input, const LaunchCells& cells);

}  // namespace rrfp
