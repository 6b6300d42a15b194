// A budget of a case, in the bytes that the model takes of a microbatch.
//
// Invariant: an order of a rank's tasks that the budget of the case lets through,
// the budget of the training lets through too. For every piece that a task takes
// or leaves grows by at most one factor, and with it whatever is summed.
//
// Where it is sure that only the room beyond the least that works needs to grow
// so, only that does, and the budget is the tighter for it: oldest first, what
// has no token is in that room; by shares, so is all but one microbatch of each
// stage, where those of a stage are of one size and no stage that holds nothing
// but stashes waits beside another.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>

#include "scheduler_core/admission.h"
#include "scheduler_core/program.h"

namespace rrfp {

/// REQUIRES: budget_bytes >= least_budget of `from`; `to` has both tables, and
/// no stash of it exceeds its activation.
std::int64_t training_budget(const Program& program, const MemoryModel& from, const MemoryModel& to,
                             int rank, std::int64_t budget_bytes);

}  // namespace rrfp
