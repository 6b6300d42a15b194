// Who started this process, and as which of how many: read from the
// environment that mpirun, srun or a PyTorch launcher leaves.
//
// Thread safety: pure function of `look_up`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "scheduler_core/result.h"

namespace rrfp {

struct Launch {
  enum class By : std::uint8_t {
    kNobody,    ///< one process, threads
    kOpenMpi,   ///< OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK
    kPmix,      ///< PMIX_RANK; how many only where Slurm says so: SLURM_NTASKS
    kSlurm,     ///< SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID
    kTorchrun,  ///< RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT
  };
  By by = By::kNobody;
  int process = 0;
  int processes = 1;                 ///< 0: not known
  std::optional<int> local_process;  ///< on its host; none: the launcher does not say
  std::string address;               ///< kTorchrun and over TCP: where process 0 listens
  int port = 0;                      ///< see find_tcp_launch()
  std::string port_from;             ///< who says so, for people
};

/// Over TCP each process is connected to every other one.
inline constexpr int kMostTcpProcesses = 16'384;

using LookUp = std::function<std::optional<std::string>(const std::string& name)>;

/// The first that fits, in the order of By after kNobody. The error names a
/// variable that holds no number, or that is missing beside another.
Result<Launch> find_launch(const LookUp& look_up);

/// For processes that meet at MASTER_ADDR and a port: numbered by RANK and
/// WORLD_SIZE where they are set (a PyTorch launcher may itself run under
/// srun), else as find_launch() says. The port is RRFP_MASTER_PORT, else
/// MASTER_PORT, or the next one where torchrun's agent itself listens at
/// MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True). The error names what is
/// missing, and what is allowed.
Result<Launch> find_tcp_launch(const LookUp& look_up);

/// Of this process.
std::optional<std::string> environment(const std::string& name);

}  // namespace rrfp
