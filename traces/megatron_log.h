// Imports the text log of a Megatron-LM job: the time of each iteration, and
// the timers below it.
//
//   ... iteration       10/     500 | ... | elapsed time per iteration (ms): 1234.5 | ...
//   (min, max) time across ranks (ms):
//       forward-backward ...............................: (1200.10, 1201.20)
//
// What becomes of it: a native trace that holds no task, only spans of rank 0:
// "iteration" as long as the iteration took, and for each timer "NAME min" and
// "NAME max", the least and the most of any rank. A timer sums up an
// iteration, so all spans start at 0 and they overlap: such a trace can be
// summed up, not replayed. Timers belong to the iteration line before them.
//
// Logs are noisy: lines of other kinds are passed over, whatever stands before
// the words that count (a rank, a date) too. What begins like one of the lines
// above and cannot be used is dropped and counted: a number that is "nan",
// infinite, negative or none at all; a timer before any iteration; an
// iteration that was logged already (a job that was resumed).
//
// Thread safety: pure function but for the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/line_source.h"
#include "traces/native_trace.h"

namespace rrfp {

struct MegatronLogImport {
  TraceHeader header;
  std::vector<TraceRecord> records;  ///< by iteration, as logged
  std::int64_t lines = 0;
  std::int64_t iterations = 0;
  std::int64_t timers = 0;  ///< lines of them
  DroppedRecords dropped;   ///< lines
};

/// The error names the file and, where it is damaged, the line; or says that
/// it holds no iteration.
Result<MegatronLogImport> import_megatron_log(const std::string& path, ReadProgress progress = {});

}  // namespace rrfp
