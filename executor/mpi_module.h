// What the MPI module offers to the program that opens it. No MPI header is
// needed to include this, and nothing is linked to MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "executor/lane_exchange.h"
#include "executor/transport.h"
#include "scheduler_core/result.h"

namespace rrfp {

struct MpiSettings {
  /// Between two looks at an idle transport; 0: look all the time.
  std::int64_t sleep_ns = 0;
};

/// MPI is initialised while one lives; at most one per process.
class MpiSession {
 public:
  virtual ~MpiSession() = default;
  virtual Transport& transport() = 0;
  /// Of the processes that give the same `group`, in the order of `lane`. All
  /// processes of the job call it, at the same point.
  virtual std::unique_ptr<LaneExchange> lane_exchange(int group, int lane) = 0;
  /// All processes have come so far, or one of them is lost and the job ends.
  virtual void barrier() = 0;
  /// Ends all processes of the job, at once.
  [[noreturn]] virtual void abort(int status) = 0;
  /// Leaves MPI in an orderly way. REQUIRES: everybody does.
  virtual void finish() = 0;
};

/// What the module exports, under the name kMpiModuleSymbol.
struct MpiModule {
  int version = 0;
  /// Null on failure; then `error` says why.
  MpiSession* (*open)(const MpiSettings& settings, std::string& error) = nullptr;
};
inline constexpr int kMpiModuleVersion = 1;
inline constexpr const char* kMpiModuleSymbol = "rrfp_mpi_module";

}  // namespace rrfp
