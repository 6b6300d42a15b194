// What figures of a scenario mean and their tables do not say: what an
// iteration has beyond a makespan, and how much an activation is.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "traces/scenario.h"

namespace rrfp {

/// Of `rrfp simulate`, which gives the makespan of one replica; of `rrfp sweep`, which gives
/// iterations. A line each, empty where the two are the same.
std::string makespan_note(const Scenario& scenario);
std::string iteration_note(const Scenario& scenario);

/// How many bytes an activation has, the unit of a table of memory; a line.
std::string activation_note(const Scenario& scenario);

/// Where the scenario gives no size, of memory in bytes: a line, else empty.
std::string unit_memory_note(const Scenario& scenario);

/// Of the largest activation; 1 where the scenario gives no size.
std::int64_t largest_activation_bytes(const Scenario& scenario);

}  // namespace rrfp
