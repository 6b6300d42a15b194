// rrfp devices: what runs can use on this machine, and why there is no more.
#include <algorithm>
#include <ostream>
#include <thread>

#include "executor/module_loader.h"
#include "experiments/command.h"

namespace rrfp {

namespace {

Result<ExitStatus> run(const Options&, Terminal& terminal) {
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  terminal.out << "cpu   " << cores << (cores == 1 ? " core" : " cores") << "\n";
  const Result<const CudaModule*> module = open_cuda();
  if (!module.ok()) {
    terminal.out << "cuda  " << module.error().message << "\n";
    return ExitStatus::kDone;
  }
  const CudaSurvey survey = (*module)->survey();
  for (const std::string& line : survey.devices) terminal.out << "cuda  " << line << "\n";
  for (const std::string& line : survey.missing) terminal.out << "cuda  " << line << "\n";
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kDevicesCommand;
const Command kDevicesCommand = {
    "devices",
    "lists the devices of this machine that can run a pipeline",
    "",
    "One line per device; where there is no CUDA device, one line per reason.",
    "rrfp devices",
    {},
    0,
    run,
};

}  // namespace rrfp
