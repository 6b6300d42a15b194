// The iterations of a recorded job, whatever the file that holds them: a
// native trace, or a recording that is imported on the way.
//
// Thread safety: one source, one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "scheduler_core/result.h"
#include "traces/line_source.h"
#include "traces/native_trace.h"
#include "traces/straggler_csv.h"
#include "traces/trace_steps.h"

namespace rrfp {

class TraceSource {
 public:
  virtual ~TraceSource() = default;

  virtual const TraceHeader& header() const = 0;
  /// Of the records read since the last rewind.
  virtual const DroppedRecords& dropped() const = 0;
  /// The next iteration; false at the end. The error names the file and the
  /// place in it.
  virtual Result<bool> next(TraceStep* step) = 0;
  /// The first iteration is next again.
  virtual Result<void> rewind() = 0;
};

enum class TraceFormat : std::uint8_t { kNative, kStragglerCsv };

struct OpenedTrace {
  TraceFormat format = TraceFormat::kNative;
  std::unique_ptr<TraceSource> source;
  std::optional<StragglerReport> report;  ///< of what was imported
};

/// What the first line looks like. The error says which formats there are.
Result<TraceFormat> trace_format(const std::string& path);

/// Opens a trace; what the first line looks like tells its format. A native
/// trace is read a step at a time, a straggler CSV is held in memory.
Result<OpenedTrace> open_trace(const std::string& path, const ReadProgress& progress = {});

/// What is held in memory already. REQUIRES: the records of an iteration
/// stand together.
std::unique_ptr<TraceSource> hold_trace(TraceHeader header, std::vector<TraceRecord> records,
                                        DroppedRecords dropped = {});

}  // namespace rrfp
