// Imports operation records of Megatron jobs in the schema that ByteDance
// published with its straggler analysis (arXiv 2505.05713):
//   dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc
// in seconds from the start of each step.
//
// What becomes of it
//  - forward-compute and backward-compute: tasks F and B. ready is the latest
//    end of what the task depends on, so start - ready is its launch delay.
//  - {forward,backward}-{send,recv}: a send and the receive of the neighbour
//    stage with the same step, dp_rank and seq_id are one message. The recorded
//    duration is residency; the transfer is done - match, match being the
//    later start of the two.
//  - params-all-gather, grads-reduce-scatter: spans that wait for all replicas
//    of the stage; embedding-grads-all-reduce: for the stages of the replica
//    that have one; optimizer-clip-main-grad: for everybody.
//  - layernorm-grads-all-reduce: a collective of devices that one row stands
//    for; optimizer, gc: spans of their own.
// A pipeline rank is a stage, a replica a dp_rank. The file may be compressed.
//
// Thread safety: pure functions but for the files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/line_source.h"
#include "traces/native_trace.h"

namespace rrfp {

/// What was used, what was left out and why.
struct StragglerReport {
  struct Type {
    std::string name;
    std::int64_t rows = 0;
    std::int64_t used = 0;
    std::int64_t launch_delay_ns = 0;  ///< summed over the rows used; tasks only
  };

  std::int64_t rows = 0;
  std::vector<Type> types;  ///< in alphabetical order
  DroppedRecords dropped;   ///< rows
  /// Sends and receives that ended before both had started (a matter of
  /// clocks): their transfer counts as 0.
  std::int64_t early_ends = 0;
};

struct StragglerImport {
  TraceHeader header;
  std::vector<TraceRecord> records;  ///< by iteration, then replica and rank
  StragglerReport report;
};

/// The error names path and line: a missing column, a cell that is no number,
/// a row of another length, a file without a usable row.
Result<StragglerImport> import_straggler_csv(const std::string& path, ReadProgress progress = {});

}  // namespace rrfp
