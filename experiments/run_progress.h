// How far a run for real is, while it lasts: on a terminal one line that is
// drawn again and again, elsewhere (a cluster job's log) a line now and then,
// the more seldom the longer it takes. What takes a second or ten says nothing.
//
// Thread safety: that of IterationSink; finish() by any thread.
#pragma once

#include <iosfwd>
#include <memory>
#include <mutex>
#include <string>

#include "executor/clock.h"
#include "executor/equipment.h"
#include "executor/plan.h"
#include "experiments/command.h"
#include "experiments/progress_bar.h"

namespace rrfp {

class RunProgress final : public IterationSink {
 public:
  using NowNs = std::int64_t (*)();

  /// Lines begin with `what` and a colon. Iterations go on to `next`.
  RunProgress(std::string what, const RunPlan& plan, std::shared_ptr<IterationSink> next,
              std::ostream& err, bool terminal = is_terminal_stderr(),
              NowNs now_ns = MonotonicClock::read_ns);

  Result<void> on_iteration(IterationRecord record) override;
  void on_getting_ready(const GettingReady& progress) override;
  /// Wipes the line; nothing is written later, whoever is left behind.
  void finish();

 private:
  void tell(const std::string& text, std::int64_t first_ns);

  const std::string what_;
  const Grid grid_;
  const int iterations_;
  const std::shared_ptr<IterationSink> next_;
  std::ostream& err_;
  const bool terminal_;
  const NowNs now_ns_;
  const std::int64_t start_ns_;
  std::int64_t iterating_since_ns_;   // workers were ready for the first iteration by then
  std::int64_t ready_since_ns_ = -1;  // they began to get ready; -1: they do not
  int done_ = 0;
  std::int64_t told_ns_ = -1;  // -1: nothing yet
  std::mutex mutex_;
  bool finished_ = false;  // guarded by mutex_
};

/// Job::run(), with what the equipment advises (once, where `advise`) and how far it is on the
/// terminal's standard error.
Result<RunOutcome> run_with_progress(Job& job, PreparedRun& prepared, const Equipment& equipment,
                                     std::shared_ptr<IterationSink> sink, const std::string& what,
                                     Terminal& terminal, bool advise = true);

}  // namespace rrfp
