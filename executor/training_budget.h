// A budget of a case, in the bytes that the model takes of a microbatch.
//
// Invariant: what fits the budget of the case, of activations and of what waits
// for W, fits the budget of the training; so an order that the one lets through
// the other lets through too. Proportion to the least that works would not do:
// of two stages on a rank, the case may fill its budget with the smaller one's
// activations or with the larger one's.
//
// Thread safety: pure function.
#pragma once

#include <cstdint>

#include "scheduler_core/admission.h"
#include "scheduler_core/program.h"

namespace rrfp {

/// The room beyond the least that works grows as much as does that microbatch
/// of the rank which grows most. REQUIRES: budget_bytes >= least_budget of `from`; `to` has both
/// tables, and no stash of it exceeds its activation.
std::int64_t training_budget(const Program& program, const MemoryModel& from, const MemoryModel& to,
                             int rank, std::int64_t budget_bytes);

}  // namespace rrfp
