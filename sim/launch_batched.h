// The launch program of Megatron's non-interleaved schedules: communication in
// grouped steps, each one entry on the batched stream followed by a wait.
//
//   warm-up      {recv_prev}, F, {send_next}
//   then once    {recv_prev}
//   steady       F, {send_next, recv_next}, I/B, {send_prev, recv_prev},
//                the last round without recv_prev
//   cool-down    {recv_next}, I/B, {send_prev}
//
// A W runs where its order has it, after the communication step of what
// stands before it.
#pragma once

#include "scheduler_core/result.h"
#include "scheduler_core/schedule.h"
#include "sim/launch_program.h"
#include "traces/case.h"

namespace rrfp {

/// REQUIRES: `order` holds each task of `input.program` once, on its rank.
/// The error names the rank and task where the order is not a run of F, then
/// alternating F and backward, then the remaining backwards; or says that the
/// program is not a chain with one stage per rank.
Result<LaunchProgram> lower_batched(const Case& input, const Schedule& order);

}  // namespace rrfp
