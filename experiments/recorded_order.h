// What an order of tasks that a job recorded is called, and what it holds.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler_core/program.h"

namespace rrfp {

/// The name of the schedule that `order` ([rank]) is, of those that frameworks
/// run; empty: none of them.
std::string schedule_name(const Program& program, const std::vector<std::vector<Task>>& order);

/// Activations that an order holds at its peak, by rank, whatever the times.
std::vector<std::int64_t> peak_activations_of(const std::vector<std::vector<Task>>& order);

}  // namespace rrfp
