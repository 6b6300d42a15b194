// The processes of a job of which this is one: how each reaches the others.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "executor/lane_exchange.h"
#include "executor/transport.h"

namespace rrfp {

class ProcessSession {
 public:
  virtual ~ProcessSession() = default;
  /// Of this process, which is one endpoint.
  virtual Transport& transport() = 0;
  /// Of the processes that give the same `group`, in the order of `lane`. All
  /// processes of the job call it, at the same point. A lane that takes longer
  /// than the patience is an error; one that does not call it at all, too, for
  /// whoever uses the exchange.
  virtual std::unique_ptr<LaneExchange> lane_exchange(int group, int lane,
                                                      std::int64_t patience_ns) = 0;
  /// Ends all processes of the job, at once. `why`: for the others, where they
  /// can be told (not over MPI); may be empty.
  [[noreturn]] virtual void abort(int status, const std::string& why) = 0;
  /// Leaves the job in an orderly way. REQUIRES: everybody does. Waits for them,
  /// with a bound: over TCP it then leaves alone, over MPI all of them are ended.
  virtual void finish() = 0;
};

}  // namespace rrfp
