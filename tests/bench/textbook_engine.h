// A simulator as a textbook has it: a binary heap of events and an ordered
// map of ready tasks per rank. It computes the same makespan for a chain in
// eager mode without bandwidth, lanes, queue or anticipation, and is there to
// be compared with.
#pragma once

#include <cstdint>

#include "sim/prepared_case.h"

namespace rrfp {

std::int64_t textbook_makespan_ns(const PreparedCase& prepared);

}  // namespace rrfp
