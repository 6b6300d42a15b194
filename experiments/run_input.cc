#include "experiments/run_input.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "experiments/input_file.h"
#include "experiments/output_file.h"
#include "experiments/preset_report.h"
#include "experiments/result_report.h"
#include "traces/case_file.h"
#include "traces/scenario_file.h"

namespace rrfp {

std::string RunInput::policy_name(int policy) const {
  return scenario ? scenario->scenario().policies[static_cast<std::size_t>(policy)].name
                  : describe_policy(single->policy);
}

Result<PreparedRun> RunInput::prepare(int policy, int iterations) const {
  Result<PreparedRun> prepared =
      scenario ? prepare_run(*scenario, policy, iterations) : prepare_run(*single, iterations);
  if (prepared.ok()) return prepared;
  const std::string whose = scenario ? "policy \"" + policy_name(policy) + "\": " : "";
  return Error{name + ": " + whose + prepared.error().message};
}

Result<RunInput> read_run_input(const Options& options) {
  const Result<std::string> path = options.operand("FILE (a case or a scenario)");
  if (!path.ok()) return path.error();
  const Result<std::size_t> limit = file_limit(options);
  if (!limit.ok()) return limit.error();
  const Result<InputFile> file = read_input(*path, *limit, kCaseOrScenario);
  if (!file.ok()) return file.error();
  RunInput input;
  input.name = file->document.file;
  input.content = {"FILE of", file->content};
  if (file->kind == FileKind::kCase) {
    if (options.text(kPointRow.name)) return chooses_from_scenario(kPointRow.name, input.name);
    Result<Case> read = read_case(file->document);
    if (!read.ok()) return read.error();
    input.single = std::move(*read);
    return input;
  }
  Result<ScenarioAtPoint> read = read_scenario_at(file->document, options);
  if (!read.ok()) return read.error();
  input.note = std::move(read->note);
  Scenario* const scenario = &read->scenario;
  input.usual_iterations = scenario->iterations;
  // A draw depends on the number of its iteration, not on how many there are.
  scenario->iterations = std::max(scenario->iterations, kMostIterations);
  Result<ScenarioResolver> resolver = ScenarioResolver::create(std::move(*scenario));
  if (!resolver.ok()) return Error{input.name + ": " + resolver.error().message};
  input.scenario = std::move(*resolver);
  return input;
}

Result<int> policy_of(const Options& options, const RunInput& input) {
  if (input.scenario) return policy_option(options, input.scenario->scenario());
  if (options.text(kPolicyRow.name)) return chooses_from_scenario(kPolicyRow.name, input.name);
  return 0;
}

std::string head_of(const RunInput& input, std::optional<int> policy) {
  if (!input.scenario) return "";
  const Scenario& scenario = input.scenario->scenario();
  return (policy ? policy_note(scenario, *policy) : "") + input.note + preset_note(scenario);
}

void tell_scenario(const RunInput& input, std::optional<int> policy, const Options& options,
                   Terminal& terminal) {
  (options.flag("json") ? terminal.err : terminal.out) << head_of(input, policy);
}

void tell_empty_messages(const RunInput& input, const Options& options, Terminal& terminal) {
  const auto empty = [](const std::vector<std::int64_t>& bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](std::int64_t one) { return one == 0; });
  };
  const Program& program = input.scenario ? input.scenario->program() : input.single->program;
  if (program.ranks() == 1) return;
  if (input.scenario) {
    const ScenarioNetwork& network = input.scenario->scenario().network;
    if (!empty(network.activation_bytes.values) || !empty(network.gradient_bytes.values)) return;
  } else if (!empty(input.single->network.message_bytes)) {
    return;
  }
  (options.flag("json") ? terminal.err : terminal.out)
      << "note: messages have 0 bytes in " << input.name
      << ", so a link costs its latency and nothing is moved; "
      << (input.scenario ? "/network/activation_mb says how large they are\n"
                         : "/network/message_bytes says how large they are\n");
}

namespace {

constexpr std::array kKinds = {TransportKind::kAuto, TransportKind::kThreads, TransportKind::kMpi,
                               TransportKind::kTcp};

}  // namespace

Result<TransportKind> transport_of(const Options& options) {
  std::array<std::string_view, kKinds.size()> words;
  std::transform(kKinds.begin(), kKinds.end(), words.begin(), name_of);
  const Result<std::string> word =
      options.word_or(kTransportRow.name, name_of(TransportKind::kAuto), words);
  if (!word.ok()) return word.error();
  return kKinds[static_cast<std::size_t>(std::find(words.begin(), words.end(), *word) -
                                         words.begin())];
}

TransportKind transport_in(const std::vector<std::string>& arguments) {
  const std::string option = "--" + std::string(kTransportRow.name);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool alone = arguments[i] == option && i + 1 < arguments.size();
    for (const TransportKind kind : kKinds) {
      const std::string word(name_of(kind));
      if (arguments[i] == option + "=" + word || (alone && arguments[i + 1] == word)) return kind;
    }
  }
  return TransportKind::kAuto;
}

Result<void> tune(const Options& options, RunPlan& plan) {
  const Result<std::int64_t> patience_ms =
      options.integer_or(kPatienceRow.name, plan.tuning.patience_ns / 1'000'000, 10, 86'400'000);
  if (!patience_ms.ok()) return patience_ms.error();
  // For the job, which reads it by itself: see job_command.cc.
  const Result<std::optional<std::int64_t>> agree_ms =
      options.integer(kAgreeRow.name, 10, 86'400'000);
  if (!agree_ms.ok()) return agree_ms.error();
  plan.tuning.patience_ns = *patience_ms * 1'000'000;
  plan.tuning.heartbeat_ns = std::min(plan.tuning.heartbeat_ns, plan.tuning.patience_ns / 5);
  return {};
}

Result<std::optional<int>> gpu_of(const Options& options) {
  const Result<std::optional<std::int64_t>> gpu = options.integer(kGpuRow.name, 0, 1023);
  if (!gpu.ok()) return gpu.error();
  if (!*gpu) return std::optional<int>();
  return std::optional<int>(static_cast<int>(**gpu));
}

Result<DeviceChoice> device_of(const Options& options) {
  // cuda is for training, which whoever opens the device says; none of these words is it.
  constexpr std::array<std::string_view, 2> kWords = {"emulated", "synthetic"};
  const Result<std::string> word = options.text(kDeviceRow.name) == "cuda"
                                       ? std::string("cuda")
                                       : options.word_or(kDeviceRow.name, "emulated", kWords);
  if (!word.ok()) return word.error();
  const Result<std::optional<std::int64_t>> bytes =
      options.integer(kPayloadRow.name, 0, std::int64_t{1} << 30);
  if (!bytes.ok()) return bytes.error();
  const Result<std::optional<int>> gpu = gpu_of(options);
  if (!gpu.ok()) return gpu.error();
  DeviceChoice choice;
  choice.gpu = *gpu;
  if (*word == "synthetic") choice.kind = DeviceKind::kSynthetic;
  if (*word == "cuda") choice.kind = DeviceKind::kCuda;
  if (choice.gpu && choice.kind == DeviceKind::kEmulated) {
    return Error{"--gpu needs --device synthetic: emulated tasks compute nothing"};
  }
  if (*bytes) choice.payload_limit = static_cast<std::size_t>(**bytes);
  return choice;
}

Result<void> check_outputs(Job& job, const Options& options,
                           std::initializer_list<std::string_view> names) {
  Result<void> can;
  for (const std::string_view name : names) {
    const std::optional<std::string> path = options.text(name);
    if (!path || !job.speaks() || !can.ok()) continue;
    can = check_output_file(*path, "--" + std::string(name));
  }
  return job.agree(can);
}

ExitStatus report_failure(const RunOutcome& outcome, std::string_view command, Terminal& terminal) {
  // In one piece, for other processes write as well.
  terminal.err << "rrfp " + std::string(command) + ": " + describe(outcome) << std::flush;
  switch (outcome.end) {
    case RunEnd::kBlocked:
      return ExitStatus::kBlocked;
    case RunEnd::kStopped:
      return ExitStatus::kInterrupted;
    default:
      return ExitStatus::kFailed;
  }
}

}  // namespace rrfp
