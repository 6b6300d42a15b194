// Writes a native trace record by record, under a temporary name that becomes
// the path when all is written, or the first checkpoint: whoever reads the path
// sees a whole trace, or whole checkpoints. Each checkpoint of a compressed
// trace is a gzip member or zstd frame of its own.
//
// Thread safety: one writer, one thread.
#pragma once

#include <memory>
#include <string>

#include "scheduler_core/result.h"
#include "traces/native_trace.h"

namespace rrfp {

class NativeTraceWriter {
 public:
  /// Compressed where the path ends in ".gz" or ".zst".
  static Result<NativeTraceWriter> create(const std::string& path, const TraceHeader& header);

  NativeTraceWriter(NativeTraceWriter&&) noexcept;
  NativeTraceWriter& operator=(NativeTraceWriter&&) noexcept;
  /// Without finish() nothing is left behind.
  ~NativeTraceWriter();

  /// Failures of the file are told by finish().
  void add(const TraceTask& task);
  void add(const TraceMessage& message);
  void add(const TraceSpan& span);
  void add(const TraceNotice& notice);
  void add(const TraceCredit& credit);
  void add(const TraceRecord& record);

  /// Makes what was added so far readable under the path, and keeps it so
  /// whatever becomes of this program; more may follow. REQUIRES: the header
  /// says `checkpoints`.
  Result<void> checkpoint();

  /// Writes the end record and gives the file its name. REQUIRES: not called
  /// before; nothing is added afterwards.
  Result<void> finish();

 private:
  struct State;
  explicit NativeTraceWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rrfp
