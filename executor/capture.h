// Writes down what a run did, while it runs: the native trace (rrfp.trace/1)
// and the decision log.
//
// Both files are written as a whole and renamed, again and again: whoever reads
// a path finds every iteration up to the last save, whatever became of the run.
// A save takes at most a tenth of the time, and the last one has everything.
//
// Thread safety: one thread at a time, as IterationSink.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/plan.h"
#include "traces/native_trace.h"

namespace rrfp {

struct CaptureFiles {
  std::string trace;      ///< path; empty: none
  std::string decisions;  ///< path; empty: none
  std::string name;       ///< of the run
  std::vector<std::pair<std::string, std::string>> versions;
};

class Capture final : public IterationSink {
 public:
  Capture(std::shared_ptr<const RunPlan> plan, CaptureFiles files);

  Result<void> on_iteration(IterationRecord record) override;
  /// Saves what has not been saved.
  Result<void> finish();

  const std::vector<IterationRecord>& iterations() const { return iterations_; }

 private:
  Result<void> save();
  Result<void> save_trace();

  std::shared_ptr<const RunPlan> plan_;
  CaptureFiles files_;
  std::vector<IterationRecord> iterations_;
  std::string decisions_;
  bool saved_ = false;
  std::int64_t next_save_ns_ = 0;
};

/// The records of one iteration as a trace has them: tasks, messages, and the
/// synchronisation of gradients as spans.
std::vector<TraceRecord> to_trace(const RunPlan& plan, const IterationRecord& record);

}  // namespace rrfp
