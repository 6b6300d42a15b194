#include "executor/launcher.h"

#include <charconv>
#include <cstdlib>

namespace rrfp {

namespace {

// The number in a variable that must be there.
Result<int> number_in(const LookUp& look_up, const std::string& name) {
  const std::optional<std::string> text = look_up(name);
  if (!text) return Error{"environment: " + name + " is missing"};
  int number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end || number < 0) {
    return Error{"environment: " + name + " is \"" + *text + "\"; expected a number, 0 or more"};
  }
  return number;
}

struct Names {
  Launch::By by;
  const char* process;
  const char* processes;
  bool may_lack_processes;
  const char* local;  // may be absent
};

constexpr Names kTorchrun = {Launch::By::kTorchrun, "RANK", "WORLD_SIZE", false, "LOCAL_RANK"};
constexpr Names kLaunchers[] = {
    {Launch::By::kOpenMpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", false,
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {Launch::By::kPmix, "PMIX_RANK", "SLURM_NTASKS", true, "SLURM_LOCALID"},
    {Launch::By::kSlurm, "SLURM_PROCID", "SLURM_NTASKS", false, "SLURM_LOCALID"},
    kTorchrun,
};

// REQUIRES: the variable with the number of the process is there.
Result<Launch> numbers_of(const Names& names, const LookUp& look_up) {
  Launch launch;
  launch.by = names.by;
  const Result<int> process = number_in(look_up, names.process);
  if (!process.ok()) return process.error();
  launch.process = *process;
  launch.processes = 0;
  if (!names.may_lack_processes || look_up(names.processes)) {
    const Result<int> processes = number_in(look_up, names.processes);
    if (!processes.ok()) return processes.error();
    launch.processes = *processes;
    if (launch.process >= launch.processes) {
      return Error{std::string("environment: ") + names.process + " is " +
                   std::to_string(launch.process) + "; expected less than " + names.processes +
                   ", " + std::to_string(launch.processes)};
    }
  }
  if (look_up(names.local)) {
    const Result<int> local = number_in(look_up, names.local);
    if (!local.ok()) return local.error();
    launch.local_process = *local;
  }
  return launch;
}

// Where process 0 listens.
Result<void> add_port(Launch& launch, const LookUp& look_up) {
  constexpr int kLastPort = 65'535;
  launch.port_from = look_up("RRFP_MASTER_PORT") ? "RRFP_MASTER_PORT" : "MASTER_PORT";
  const Result<int> port = number_in(look_up, launch.port_from);
  if (!port.ok()) return port.error();
  if (*port < 1 || *port > kLastPort) {
    return Error{"environment: " + launch.port_from + " is " + std::to_string(*port) +
                 "; expected 1 to 65535"};
  }
  launch.port = *port;
  const bool taken = look_up("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (taken && launch.port_from == "MASTER_PORT") {
    launch.port += launch.port < kLastPort ? 1 : -1;
    launch.port_from =
        "next to MASTER_PORT, where torchrun listens; RRFP_MASTER_PORT names another";
  }
  return {};
}

Result<Launch> with_meeting_point(Launch launch, const LookUp& look_up) {
  if (launch.processes > kMostTcpProcesses) {
    return Error{"environment: " + std::to_string(launch.processes) +
                 " processes (WORLD_SIZE); expected at most " + std::to_string(kMostTcpProcesses) +
                 " over TCP"};
  }
  launch.address = look_up("MASTER_ADDR").value_or("");
  if (launch.address.empty()) {
    return Error{"environment: MASTER_ADDR is missing: the host of process 0"};
  }
  if (Result<void> added = add_port(launch, look_up); !added.ok()) return added.error();
  return launch;
}

}  // namespace

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

Result<Launch> find_launch(const LookUp& look_up) {
  for (const Names& names : kLaunchers) {
    if (!look_up(names.process)) continue;
    Result<Launch> launch = numbers_of(names, look_up);
    if (!launch.ok() || launch->by != Launch::By::kTorchrun) return launch;
    return with_meeting_point(*launch, look_up);
  }
  return Launch{};
}

Result<Launch> find_tcp_launch(const LookUp& look_up) {
  const bool numbered = look_up("RANK") && look_up("WORLD_SIZE");
  const Result<Launch> launch = numbered ? numbers_of(kTorchrun, look_up) : find_launch(look_up);
  if (!launch.ok()) return launch;
  if (launch->by == Launch::By::kNobody || launch->processes == 0) {
    return Error{
        "environment: RANK and WORLD_SIZE are missing: which process this is, of how many"};
  }
  return with_meeting_point(*launch, look_up);
}

}  // namespace rrfp
