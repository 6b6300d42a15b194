// The processes of a job that reach each other over TCP, wherever they run and
// whoever started them: one connection for each pair.
//
// Thread safety: as Transport.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "executor/process_session.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// A wait for processes on their way into the job that takes longer is told of.
inline constexpr std::int64_t kTcpSlowNs = 2'000'000'000;

struct TcpSettings {
  int process = 0;
  int processes = 1;
  std::string address;                    ///< of the host of process 0, or its name
  int port = 0;                           ///< where process 0 listens
  std::string port_from = "MASTER_PORT";  ///< who says so, for people
  /// For all processes to come, and to make each exchange of lanes with the others.
  std::int64_t patience_ns = 60'000'000'000;
  /// Told where that takes long: who waits for whom, for people.
  std::function<void(const std::string& who_waits)> on_slow;
  /// How long one that has done its part waits for others that have not.
  std::int64_t leave_patience_ns = 60'000'000'000;
  /// How long a waiting process looks before it sleeps. 0: sleeps at once.
  std::int64_t spin_ns = 0;
};

/// Returns once all processes are connected. See meet_over_tcp() for the error.
Result<std::unique_ptr<ProcessSession>> open_tcp(const TcpSettings& settings);

}  // namespace rrfp
