// The file and the options that the commands which run for real share.
//
// Thread safety: pure functions but for the files.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/equipment.h"
#include "executor/job.h"
#include "executor/run_setup.h"
#include "experiments/command.h"
#include "experiments/options.h"
#include "experiments/policy_option.h"
#include "experiments/scenario_point.h"
#include "scheduler_core/result.h"
#include "traces/scenario_resolve.h"

namespace rrfp {

inline constexpr OptionRow kTransportRow = {
    "transport", "KIND",
    "threads; mpi; tcp: processes that meet at MASTER_ADDR and MASTER_PORT; or auto (default: as "
    "the launcher that started several processes, else threads)",
    OptionRow::Alike::kNot};
inline constexpr OptionRow kIterationsRow = {"iterations", "N",
                                             "how many, instead of the scenario's (a case: 1)"};
inline constexpr OptionRow kPayloadRow = {
    "payload-bytes", "N",
    "of each message that travel for real (default 4096; --device synthetic: all)"};
inline constexpr OptionRow kDeviceRow = {
    "device", "KIND",
    "emulated (default), or synthetic: a GPU works as long as FILE says, shared by the ranks of "
    "one process, or one for each process"};
inline constexpr OptionRow kGpuRow = {
    "gpu", "N",
    "which of the GPUs that `rrfp devices` lists (default: 0; processes of one host: that of their "
    "number there, so give each process its own or none)",
    OptionRow::Alike::kNot};
inline constexpr OptionRow kTraceRow = {
    "trace", "FILE", "write what happened (rrfp.trace/1; .gz and .zst compress)",
    OptionRow::Alike::kWhetherGiven, OptionRow::File::kReplaced};
inline constexpr OptionRow kDecisionsRow = {
    "decisions", "FILE", "write every call on the scheduler core and every decision",
    OptionRow::Alike::kWhetherGiven, OptionRow::File::kReplaced};
inline constexpr OptionRow kAdaptRow = {
    "adapt", "", "refine expected durations by a running mean of what is measured"};
inline constexpr OptionRow kPatienceRow = {
    "patience-ms", "MS",
    "a worker that is silent for so long in a run is taken for lost (default 5000)"};
inline constexpr OptionRow kAgreeRow = {
    "agree-ms", "MS",
    "beside a run, processes wait for each other for so long: to agree, to connect NCCL, to leave "
    "(default 300000, or --patience-ms where that is longer)"};

/// The worlds of all iterations are drawn before a run starts.
inline constexpr int kMostIterations = 10'000;

/// A case, or a scenario with its policies.
struct RunInput {
  std::string name;
  std::string note;  ///< which point of a grid this is; empty where there is none
  Term content;      ///< what the file holds, for processes to compare
  std::optional<Case> single;
  std::optional<ScenarioResolver> scenario;

  /// As the file calls it; `name` is the file's.
  std::string title() const { return scenario ? scenario->scenario().name : single->name; }
  std::string policy_name(int policy) const;
  int usual_iterations = 1;  ///< as the file says; prepare() takes up to kMostIterations
  Result<PreparedRun> prepare(int policy, int iterations) const;
};

/// REQUIRES: kPointRow is among the options.
Result<RunInput> read_run_input(const Options& options);

/// The policy that --policy names, or the usual one (policy_option.h).
/// REQUIRES: kPolicyRow is among the options.
Result<int> policy_of(const Options& options, const RunInput& input);

/// What simulations say first of a scenario's policy, point and presets, said of
/// a run for real too. `policy`: none where several are run.
std::string head_of(const RunInput& input, std::optional<int> policy);

/// Prints it. REQUIRES: "json" is among the options.
void tell_scenario(const RunInput& input, std::optional<int> policy, const Options& options,
                   Terminal& terminal);

/// Says where messages have no bytes, for then a run moves nothing.
void tell_empty_messages(const RunInput& input, const Options& options, Terminal& terminal);

/// --transport.
Result<TransportKind> transport_of(const Options& options);
/// The same of arguments that may be wrong: kAuto where they do not say.
TransportKind transport_in(const std::vector<std::string>& arguments);

/// --patience-ms and what else goes into every plan.
Result<void> tune(const Options& options, RunPlan& plan);

/// --gpu.
Result<std::optional<int>> gpu_of(const Options& options);

/// --device, --gpu and --payload-bytes.
Result<DeviceChoice> device_of(const Options& options);

/// Whether what these options name can be written in the end; whoever speaks
/// for the job looks, and all learn it. All processes call it at the same point.
Result<void> check_outputs(Job& job, const Options& options,
                           std::initializer_list<std::string_view> names);

/// Prints what a run that did not complete is to tell, and gives its status.
ExitStatus report_failure(const RunOutcome& outcome, std::string_view command, Terminal& terminal);

}  // namespace rrfp
