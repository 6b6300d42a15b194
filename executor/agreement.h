// Before processes do something together: can each of them? One that found that
// it cannot, and left, would let the others wait for it.
//
// Thread safety: one thread per process.
#pragma once

#include "executor/lane_exchange.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// All processes call it at the same point. The error, in the same words for
/// all of them, names the first that cannot go on, and its reason.
Result<void> agree(LaneExchange& everyone, const Result<void>& mine);

/// How many of them are on this host, this one among them. All processes call
/// it at the same point.
Result<int> processes_on_this_host(LaneExchange& everyone);

}  // namespace rrfp
