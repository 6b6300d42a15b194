// What the MPI module offers to the program that opens it. No MPI header is
// needed to include this, and nothing is linked to MPI.
#pragma once

#include <cstdint>
#include <string>

#include "executor/process_session.h"

namespace rrfp {

struct MpiSettings {
  /// Between two looks at an idle transport; 0: look all the time.
  std::int64_t sleep_ns = 0;
};

/// What the module exports, under the name kMpiModuleSymbol.
struct MpiModule {
  int version = 0;
  /// Null on failure; then `error` says why. MPI is initialised while a session
  /// lives; there is at most one per process.
  ProcessSession* (*open)(const MpiSettings& settings, std::string& error) = nullptr;
};
inline constexpr int kMpiModuleVersion = 4;
inline constexpr const char* kMpiModuleSymbol = "rrfp_mpi_module";

}  // namespace rrfp
