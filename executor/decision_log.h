// The decision log (rrfp.decisions/1): every call on the core's machines of a
// run and every decision, with its candidates and its reason, so that a person
// can see why, and a program can decide again (replay_log.h).
//
// JSON Lines:
//   line 1          {"schema", "grid", "credits", "adapt_expected"}
//   per iteration   {"iteration", "replica", "calls", "case"}: how many lines
//                   of calls follow; "case" (rrfp.case/1, as arranged) where
//                   new machines are made, absent where the ones before go on.
//                   Running means go on either way
//   per call        {"w": endpoint, "call": ..., ...}, in the order in which
//                   each worker made them
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "executor/plan.h"
#include "executor/records.h"
#include "traces/json_reader.h"
#include "traces/json_writer.h"

namespace rrfp {

inline constexpr std::string_view kDecisionsSchema = "rrfp.decisions/1";

/// One line each, with its end.
std::string decision_log_header(const RunPlan& plan);
std::string decision_log_of(const RunPlan& plan, const IterationRecord& record);

/// {"call": "input", "task": "1F0", "from": 0}, the fields that the call has.
JsonValue call_to_json(const CoreCall& call, const Program& program);

/// The error names the field.
Result<CoreCall> call_from_json(const JsonDocument& document, const Program& program);

}  // namespace rrfp
