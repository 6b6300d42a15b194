// Reads a native trace record by record, in memory that does not grow with the
// file.
//
// Thread safety: one reader, one thread.
#pragma once

#include <memory>
#include <string>

#include "scheduler_core/result.h"
#include "traces/line_source.h"
#include "traces/native_trace.h"

namespace rrfp {

class NativeTraceReader {
 public:
  /// Opens the file and reads its header. The error names path and line.
  static Result<NativeTraceReader> open(const std::string& path, ReadProgress progress = {});

  NativeTraceReader(NativeTraceReader&&) noexcept;
  NativeTraceReader& operator=(NativeTraceReader&&) noexcept;
  ~NativeTraceReader();

  const TraceHeader& header() const;

  /// The next record; false at the end. The error, after which no more may be
  /// read, names the line: what is no record, a needed value that is absent or
  /// of the wrong type, or a file that was cut. A record that is well formed
  /// but cannot be (a stage that the header has not, an end before its start)
  /// is dropped and counted.
  Result<bool> next(TraceRecord* record);

  /// Where the trace has checkpoints, what stands behind the last one counts
  /// as dropped.
  const DroppedRecords& dropped() const;

 private:
  struct State;
  explicit NativeTraceReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rrfp
