// One replica of an iteration that was run, as a case: its own task and
// message times in place of the world's. What a simulator makes of it, against
// what was measured, is the error of the model and of nothing else.
//
// The length of a task is from the moment at which the model has it start (its
// decision and the start delay, or the end of the task before) to the end that
// the host saw; so what the host was late by is part of the task. A message
// arrives when its receiver saw it; a blocking transfer is over, for both ends,
// when it was due. A group of lanes becomes one lane, as its leader saw it.
//
// Thread safety: pure functions.
#pragma once

#include <span>

#include "executor/calibrated_links.h"
#include "executor/plan.h"
#include "executor/records.h"
#include "traces/case.h"

namespace rrfp {

/// REQUIRES: the iteration is complete.
Case realised_case(const RunPlan& plan, const IterationRecord& record, int replica);

/// End of the last task of that replica.
std::int64_t replica_makespan_ns(const RunPlan& plan, const IterationRecord& record, int replica);

/// What the host added, one entry per task and per message of the iteration:
/// a task's length less the world's, and how late an arrival was seen, less
/// what its link takes beyond the world's (calibrated_links.h).
struct Overheads {
  std::vector<std::int64_t> task_ns;
  std::vector<std::int64_t> message_ns;
};
void add_overheads(const RunPlan& plan, const IterationRecord& record,
                   std::span<const CalibratedLink> links, Overheads& to);

}  // namespace rrfp
