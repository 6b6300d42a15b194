// What the MPI module offers to the program that opens it. No MPI header is
// needed to include this, and nothing is linked to MPI.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "executor/process_session.h"

namespace rrfp {

struct MpiSettings {
  /// Between two looks at an idle transport; 0: look all the time.
  std::int64_t sleep_ns = 0;
  /// What the launcher says: which process this is, of how many (0: not known).
  int process = 0;
  int processes = 0;
  /// How long it waits for the others to call MPI_Init.
  std::int64_t patience_ns = 60'000'000'000;
  /// How long one that has done its part waits for others that have not.
  std::int64_t leave_patience_ns = 300'000'000'000;
  /// Told, by any thread, where either takes long: who waits for whom, for people.
  std::function<void(const std::string& who_waits)> on_slow;
  /// Told of it where it took too long. Ends the process, for neither can be
  /// left; where it returns, the process is ended all the same.
  std::function<void(const std::string& who_waited)> on_late;
};

/// What the module exports, under the name kMpiModuleSymbol.
struct MpiModule {
  int version = 0;
  /// Null on failure; then `error` says why. MPI is initialised while a session
  /// lives; there is at most one per process.
  ProcessSession* (*open)(const MpiSettings& settings, std::string& error) = nullptr;
};
inline constexpr int kMpiModuleVersion = 6;
inline constexpr const char* kMpiModuleSymbol = "rrfp_mpi_module";

}  // namespace rrfp
