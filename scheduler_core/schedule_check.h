// What can be said about a schedule and its budgets before anything runs, in
// words that name the fault. That each task stands once and on its rank is
// checked by fit_program (schedule.h).
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "scheduler_core/admission.h"
#include "scheduler_core/program.h"
#include "scheduler_core/result.h"
#include "scheduler_core/schedule.h"

namespace rrfp {

/// Every rank's budget is at least the least that works under any hint. The
/// error names the rank, its budget and the least. `budget_bytes` by rank;
/// empty: no limits.
Result<void> check_budgets(const Program& program, std::span<const std::int64_t> activation_bytes,
                           std::span<const std::optional<std::int64_t>> budget_bytes);

/// The schedule runs to its end as a fixed order (window 1) with unlimited
/// memory, whatever the durations. The error walks the cycle: which task waits
/// for which, and which task that one stands behind.
/// REQUIRES: fit_program(program, schedule) returned a program equal to this.
Result<void> check_fixed_order(const Program& program, const Schedule& schedule);

/// As a fixed order that holds one task at a time (queue depth 1) the schedule
/// stays within its budgets: then what a rank holds follows from its own order
/// alone. The error names the first F that can never start, and the bytes.
/// REQUIRES: as check_fixed_order, and check_budgets passed.
Result<void> check_fixed_memory(const Program& program, const Schedule& schedule,
                                const MemoryModel& memory,
                                std::span<const std::optional<std::int64_t>> budget_bytes);

}  // namespace rrfp
