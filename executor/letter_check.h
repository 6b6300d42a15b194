// What a letter or a record from another worker may say: looked at before
// anything is indexed or counted by it. A process of another mind, or a broken
// one, then ends the run with its name and does no harm.
//
// What is wrong with a letter by itself is found here. Whether it may come now
// whoever gets it knows: a vote that came before, a credit of a message that was
// not sent. Between them they leave nothing to the checks of the core's
// machines, which would end the process.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "executor/plan.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// Of `letter` to the worker at endpoint `to`, in a run of `plan`. The error
/// names the sender, and the field.
Result<void> check_letter(const Letter& letter, const RunPlan& plan, int to);

/// The error of a letter that is right by itself and must not come now: who has
/// sent it, of which task or channel, and `why`. `program`: of its iteration.
inline constexpr const char* kSentBefore = "which it has sent before";
Error out_of_turn(const Letter& letter, const Grid& grid, const Program& program,
                  const std::string& why);

/// Of what endpoint `from` wrote down in `iteration`.
Result<void> check_record(const WorkerRecord& record, const RunPlan& plan, int from, int iteration);

}  // namespace rrfp
