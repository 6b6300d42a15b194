// A time that no policy can beat on a case, whatever its hint, window, memory
// or patience: what a bubble is measured against.
//
// It is the larger of
//  - the longest path: durations, messages and waits for inputs along
//    dependencies, as if every task had a rank of its own; and
//  - for each rank, all of its work without a pause, from the earliest instant
//    at which any of its tasks could start, followed by the shortest path that
//    still follows one of them.
// Memory and queues on links are not counted, so it holds with any of them; it
// need not be reachable.
//
// Thread safety: a pure function.
#pragma once

#include <cstdint>

#include "traces/prepared_case.h"

namespace rrfp {

/// In ns; holds for every policy that keeps the arrangement and the fused
/// backwards of `prepared`. Launch-queue mode has its own costs of messages,
/// of which none is counted.
std::int64_t lower_bound_ns(const PreparedCase& prepared);

}  // namespace rrfp
