// SIGINT and SIGTERM while a run is on: they set its stop flag, and write what
// the worker of this process waits for, since there may be no time for more
// (mpirun kills a second after it asks).
//
// The second signal ends the program. At most one at a time.
#pragma once

#include <atomic>
#include <csignal>
#include <memory>

#include "executor/worker.h"

namespace rrfp {

class StopSignals {
 public:
  /// `line`: null where nothing is to be written.
  StopSignals(std::shared_ptr<std::atomic<bool>> stop, const WaitingLine* line);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
  std::shared_ptr<std::atomic<bool>> stop_;
};

}  // namespace rrfp
