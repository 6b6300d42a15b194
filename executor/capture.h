// Writes down what a run did, while it runs: the native trace (rrfp.trace/1)
// and the decision log.
//
// Both files grow by every iteration as it ends: whoever reads a path finds all
// of them, whatever becomes of the run, and its readers pass over an iteration
// that was being written when the run was killed.
//
// Thread safety: one thread at a time, as IterationSink.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/plan.h"
#include "traces/growing_file.h"
#include "traces/native_trace_writer.h"

namespace rrfp {

struct CaptureFiles {
  std::string trace;      ///< path; empty: none
  std::string decisions;  ///< path; empty: none
  std::string name;       ///< of the run
  std::vector<std::pair<std::string, std::string>> versions;
};

/// What is kept in memory of an iteration.
struct IterationFigures {
  std::int64_t makespan_ns = 0;
  std::int64_t iteration_ns = 0;
  std::int64_t worst_stall_ns = 0;
  std::int64_t clock_error_ns = 0;  ///< of the worst worker
};

class Capture final : public IterationSink {
 public:
  Capture(std::shared_ptr<const RunPlan> plan, CaptureFiles files);

  Result<void> on_iteration(IterationRecord record) override;
  /// After the last iteration. Where there was none the files hold no more than
  /// their headers.
  Result<void> finish();

  const std::vector<IterationFigures>& figures() const { return figures_; }

 private:
  Result<void> open_trace(const IterationRecord* first);
  Result<void> add_to_trace(const IterationRecord& record);
  Result<void> add_to_decisions(const IterationRecord& record);

  std::shared_ptr<const RunPlan> plan_;
  CaptureFiles files_;
  std::optional<NativeTraceWriter> trace_;
  std::optional<GrowingFile> decisions_;
  bool decisions_begun_ = false;
  std::vector<IterationFigures> figures_;
};

/// The records of one iteration as a trace has them: tasks, messages, notices
/// and credits, and the synchronisation of gradients as spans.
std::vector<TraceRecord> to_trace(const RunPlan& plan, const IterationRecord& record);

}  // namespace rrfp
