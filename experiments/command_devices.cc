// rrfp devices: what runs can use on this machine, and why there is no more.
#include <algorithm>
#include <array>
#include <ostream>

#include "executor/core_count.h"
#include "executor/module_loader.h"
#include "experiments/command.h"

namespace rrfp {

namespace {

constexpr std::array kOptions = {
    OptionRow{"check", "", "try each GPU: partitions, products, training, NCCL; takes seconds"},
    OptionRow{"gpu", "N", "with --check: this one alone, as numbered in the list"},
};

// True where all of them passed.
bool check_device(const CudaModule& module, int device, Terminal& terminal) {
  terminal.out << "checks of device " << device << "\n" << std::flush;
  bool all_passed = true;
  module.check(device, [&](const CudaCheck& check) {
    // At once, for the next may hang.
    terminal.out << "  " << (check.passed ? "ok      " : "FAILED  ") << check.what << ": "
                 << check.text << "\n"
                 << std::flush;
    all_passed = all_passed && check.passed;
  });
  return all_passed;
}

Result<ExitStatus> check_devices(const Options& options, const CudaModule& module, int devices,
                                 Terminal& terminal) {
  const Result<std::optional<std::int64_t>> only = options.integer("gpu", 0, devices - 1);
  if (!only.ok()) return only.error();
  bool all_passed = true;
  for (int device = 0; device < devices; ++device) {
    if (*only && **only != device) continue;
    all_passed = check_device(module, device, terminal) && all_passed;
  }
  return all_passed ? ExitStatus::kDone : ExitStatus::kFailed;
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const bool check = options.flag("check");
  if (!check && options.text("gpu")) return Error{"--gpu needs --check"};
  const int cores = core_count();
  terminal.out << "cpu   " << cores << (cores == 1 ? " core" : " cores") << "\n";
  // Without a device there is nothing to check, which whoever asked for it has to be told.
  const ExitStatus without = check ? ExitStatus::kWrong : ExitStatus::kDone;
  const Result<const CudaModule*> module = open_cuda();
  if (!module.ok()) {
    terminal.out << "cuda  " << module.error().message << "\n";
    return without;
  }
  const CudaSurvey survey = (*module)->survey();
  for (const std::string& line : survey.devices) terminal.out << "cuda  " << line << "\n";
  for (const std::string& line : survey.missing) terminal.out << "cuda  " << line << "\n";
  if (survey.devices.empty()) return without;
  if (!check) return ExitStatus::kDone;
  return check_devices(options, **module, static_cast<int>(survey.devices.size()), terminal);
}

}  // namespace

extern const Command kDevicesCommand;
const Command kDevicesCommand = {
    "devices",
    "lists the devices of this machine that can run a pipeline, and checks them",
    "",
    "One line per device; where there is no CUDA device, one line per reason. --check tries what\n"
    "runs rely on, a line for each: status 0 where all is well, 1 where something is not, 2 where\n"
    "there is no CUDA device.",
    "rrfp devices --check",
    kOptions,
    0,
    run,
};

}  // namespace rrfp
