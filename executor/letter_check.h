// What a letter or a record from another worker may say: looked at before
// anything is indexed by it. A process of another mind, or a broken one, then
// ends the run with its name and does no harm.
//
// Thread safety: pure functions.
#pragma once

#include "executor/plan.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// Of `letter` to the worker at endpoint `to`, in a run of `plan`. The error
/// names the sender, and the field.
Result<void> check_letter(const Letter& letter, const RunPlan& plan, int to);

/// Of what endpoint `from` wrote down in `iteration`.
Result<void> check_record(const WorkerRecord& record, const RunPlan& plan, int from, int iteration);

}  // namespace rrfp
