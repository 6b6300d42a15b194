// A simulator as a textbook has it, to be compared with: a binary heap of
// events (std::priority_queue), one ordered map of ready tasks per rank
// (std::map by hint position), and flat tables by task for positions and unmet
// dependencies. An idle rank looks through its map from the front for the
// first task that fits its budget. It is neither tuned nor slowed down.
//
// It computes the makespan of a chain, one stage to a rank, in eager mode
// without bandwidth, lanes, queue, window or anticipation, with activations of
// one byte.
#pragma once

#include <cstdint>

#include "sim/prepared_case.h"

namespace rrfp {

std::int64_t textbook_makespan_ns(const PreparedCase& prepared);

}  // namespace rrfp
