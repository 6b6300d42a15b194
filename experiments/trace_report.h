// What a trace holds, what an import made of a file, as text for people.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/trace_summary.h"
#include "traces/native_trace.h"
#include "traces/straggler_csv.h"

namespace rrfp {

/// One line: ranks, stages, microbatches, replicas, lanes.
std::string describe_shape(const TraceHeader& header);

/// Iterations, lengths by kind of record, ranks, clocks, oddities.
std::string describe_summary(const TraceHeader& header, const TraceSummary& summary);

/// "dropped 3 records:" and a line per reason; empty where there are none.
std::string describe_dropped(const DroppedRecords& dropped, const std::string& of_what);

/// What a straggler CSV was made into.
std::string describe_import(const StragglerReport& report);

/// Mean, median and 95th percentile by name of span.
std::string describe_spans(const TraceSummary& summary);

}  // namespace rrfp
