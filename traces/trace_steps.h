// A native trace, one iteration at a time.
//
// Thread safety: one reader, one thread.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/native_trace.h"
#include "traces/native_trace_reader.h"

namespace rrfp {

/// Everything that was recorded of one iteration.
struct TraceStep {
  int iteration = 0;
  std::vector<TraceTask> tasks;
  std::vector<TraceMessage> messages;
  std::vector<TraceSpan> spans;
  std::vector<TraceNotice> notices;
  std::vector<TraceCredit> credits;

  void clear();
  void add(const TraceRecord& record);
};

class TraceStepReader {
 public:
  static Result<TraceStepReader> open(const std::string& path, ReadProgress progress = {});

  const TraceHeader& header() const { return reader_.header(); }
  const DroppedRecords& dropped() const { return reader_.dropped(); }

  /// The next iteration; false at the end. The error names path and line, or
  /// an iteration whose records do not stand together.
  Result<bool> next(TraceStep* step);

 private:
  TraceStepReader(std::string path, NativeTraceReader reader)
      : path_(std::move(path)), reader_(std::move(reader)) {}

  std::string path_;
  NativeTraceReader reader_;
  TraceRecord ahead_;  ///< the first record of the next iteration
  bool has_ahead_ = false;
  std::set<int> seen_;
};

/// The iteration that a record belongs to.
int iteration_of(const TraceRecord& record);

}  // namespace rrfp
