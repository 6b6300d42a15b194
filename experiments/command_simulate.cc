// rrfp simulate: runs one case, or one iteration of a scenario, in virtual time.
#include <algorithm>
#include <array>
#include <ostream>

#include "executor/calibration_file.h"
#include "experiments/blocked_report.h"
#include "experiments/calibration_report.h"
#include "experiments/command.h"
#include "experiments/input_file.h"
#include "experiments/policy_option.h"
#include "experiments/preset_report.h"
#include "experiments/result_report.h"
#include "experiments/scenario_notes.h"
#include "experiments/scenario_point.h"
#include "experiments/timeline.h"
#include "sim/simulate.h"
#include "traces/atomic_file.h"
#include "traces/case_file.h"
#include "traces/case_words.h"
#include "traces/result_file.h"
#include "traces/scenario_file.h"
#include "traces/scenario_resolve.h"
#include "traces/transfer.h"

namespace rrfp {

namespace {

constexpr std::array kOptions = {
    OptionRow{"json", "", "print the result as rrfp.result/1 instead of tables"},
    OptionRow{"trace", "FILE", "also write a timeline for Perfetto (ui.perfetto.dev) or Chrome",
              OptionRow::Alike::kValue, OptionRow::File::kReplaced},
    OptionRow{"network", "MODE,...",
              "eager, rendezvous or launch-queue instead of the file's; several are compared"},
    kPolicyRow,
    OptionRow{"iteration", "N", "of a scenario: which iteration's draws (default 0)"},
    OptionRow{"replica", "N", "of a scenario: which data-parallel replica's draws (default 0)"},
    kPointRow,
    kCalibrationRow,
    kFileLimitRow,
};

// A case under the network mode that the command line asks for.
struct Variant {
  Case given;
  bool window_forced = false;
  bool message_derived = false;
};

// What the file gives, and where a launch-queue run of it takes message_ns from.
struct Loaded {
  Case given;
  bool is_scenario = false;
  bool message_stated = false;
  std::string note{};  // of a scenario: its point, presets and what figures mean

  // A case that is itself launch-queue means 0 where it says nothing.
  bool derives_message_ns(NetworkMode mode) const {
    return mode == NetworkMode::kLaunchQueue && !message_stated &&
           (is_scenario || given.network.mode != NetworkMode::kLaunchQueue);
  }
};

Result<std::vector<NetworkMode>> modes_of(const Options& options, NetworkMode otherwise) {
  const Result<std::vector<std::string>> words = options.list("network");
  if (!words.ok()) return words.error();
  if (words->empty()) return std::vector<NetworkMode>{otherwise};
  std::vector<std::string_view> allowed;
  for (const Choice<NetworkMode>& mode : kModes) allowed.push_back(mode.word);
  std::vector<NetworkMode> modes;
  for (const std::string& word : *words) {
    const auto found = std::find(allowed.begin(), allowed.end(), word);
    if (found == allowed.end()) return not_one_of("--network", word, allowed);
    modes.push_back(kModes[found - allowed.begin()].value);
  }
  return modes;
}

// A mode that the command line asks for brings the window and the message_ns that it needs.
Variant with_mode(const Loaded& loaded, NetworkMode mode) {
  const Case& given = loaded.given;
  Variant variant{given, false, loaded.derives_message_ns(mode)};
  if (mode == given.network.mode) return variant;
  variant.given.network.mode = mode;
  if (variant.message_derived) variant.given.network.message_ns = mean_transfer_ns(given);
  if (mode != NetworkMode::kEager && given.policy.window != 1) {
    variant.given.policy.window = 1;
    variant.given.policy.anticipation.reset();
    variant.window_forced = true;
  }
  return variant;
}

std::string notes_of(const Variant& variant) {
  std::string notes;
  if (variant.window_forced) {
    notes += "note: " + std::string(mode_name(variant.given.network.mode)) +
             " runs a pre-committed order, so the hint is run as a fixed order (window 1)\n";
  }
  if (variant.message_derived) notes += message_note(variant.given.network.message_ns);
  return notes;
}

Result<void> write_trace(const std::string& path, const Case& given,
                         const SimulationResult& result) {
  const Result<std::string> text = timeline(given, result);
  if (!text.ok()) return text.error();
  return write_file_atomically(path, *text);
}

// What is wrong with a case that its reader cannot see has no file in it.
Error in_file(const std::string& file, const Error& error) {
  return Error{file + ": " + error.message};
}

Result<ExitStatus> simulate_one(const std::string& file, const Variant& variant,
                                const Options& options,
                                const std::optional<Calibration>& calibration, Terminal& terminal) {
  SimulateOptions detail;
  detail.messages = options.text("trace").has_value();
  const Result<SimulationResult> result = simulate(variant.given, detail);
  if (!result.ok()) return in_file(file, result.error());
  if (const std::optional<std::string> path = options.text("trace")) {
    const Result<void> written = write_trace(*path, variant.given, *result);
    if (!written.ok()) return written.error();
  }
  const bool json = options.flag("json");
  (json ? terminal.err : terminal.out) << notes_of(variant);
  if (json) {
    JsonValue out = result_to_json(*result);
    if (calibration) out.add("calibration", calibration_to_json(*calibration));
    terminal.out << to_text(out, JsonLayout::kCompact) << "\n";
  } else {
    terminal.out << describe_case(variant.given) << "\n" << describe_result(*result);
    if (!result->completed) terminal.out << "\n" << describe_blocked(variant.given, *result);
  }
  return result->completed ? ExitStatus::kDone : ExitStatus::kBlocked;
}

Result<ExitStatus> simulate_several(const std::string& file, const std::vector<Variant>& variants,
                                    Terminal& terminal) {
  std::vector<ModeRun> runs;
  std::string notes;
  std::string blocked;
  for (const Variant& variant : variants) {
    Result<SimulationResult> result = simulate(variant.given);
    if (!result.ok()) return in_file(file, result.error());
    notes += notes_of(variant);
    const NetworkMode mode = variant.given.network.mode;
    if (!result->completed) {
      blocked +=
          "\n" + std::string(mode_name(mode)) + ": " + describe_blocked(variant.given, *result);
    }
    runs.push_back({mode, variant.given.policy.window, std::move(result).value()});
  }
  terminal.out << describe_case(variants.front().given) << "\n"
               << compare_modes(runs) << notes << blocked;
  return blocked.empty() ? ExitStatus::kDone : ExitStatus::kBlocked;
}

Result<Loaded> load_scenario(const JsonDocument& document, const Options& options) {
  Result<ScenarioAtPoint> read = read_scenario_at(document, options);
  if (!read.ok()) return read.error();
  Scenario* const scenario = &read->scenario;
  const Result<int> policy = policy_option(options, *scenario);
  if (!policy.ok()) return policy.error();
  const Result<std::int64_t> iteration =
      options.integer_or("iteration", 0, 0, std::max(0, scenario->iterations - 1));
  if (!iteration.ok()) return iteration.error();
  const Result<std::int64_t> replica =
      options.integer_or("replica", 0, 0, scenario->data_parallel.replicas - 1);
  if (!replica.ok()) return replica.error();
  const Result<ScenarioResolver> resolver = ScenarioResolver::create(std::move(*scenario));
  if (!resolver.ok()) return in_file(document.file, resolver.error());
  Result<Case> given =
      resolver->resolve(*policy, static_cast<int>(*iteration), static_cast<int>(*replica));
  if (!given.ok()) return in_file(document.file, given.error());
  return Loaded{std::move(given).value(), true, resolver->scenario().network.message_ns.has_value(),
                policy_note(resolver->scenario(), *policy) + read->note +
                    preset_note(resolver->scenario()) + makespan_note(resolver->scenario()) +
                    unit_memory_note(resolver->scenario())};
}

Result<Loaded> load_case(const JsonDocument& document) {
  Result<Case> given = read_case(document);
  if (!given.ok()) return given.error();
  const JsonValue* network = document.root.find("network");
  return Loaded{std::move(given).value(), false,
                network != nullptr && network->find("message_ns") != nullptr};
}

Result<Loaded> load(const std::string& path, const Options& options) {
  const Result<std::size_t> limit = file_limit(options);
  if (!limit.ok()) return limit.error();
  const Result<InputFile> input = read_input(path, *limit, kCaseOrScenario);
  if (!input.ok()) return input.error();
  if (input->kind == FileKind::kScenario) return load_scenario(input->document, options);
  for (const std::string_view other : {"policy", "iteration", "replica", "point"}) {
    if (!options.text(other)) continue;
    return chooses_from_scenario(other, input->document.file);
  }
  return load_case(input->document);
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const Result<std::string> path = options.operand("FILE (a case or a scenario)");
  if (!path.ok()) return path.error();
  const Result<Loaded> loaded = load(*path, options);
  if (!loaded.ok()) return loaded.error();
  const Result<std::vector<NetworkMode>> modes = modes_of(options, loaded->given.network.mode);
  if (!modes.ok()) return modes.error();
  const Result<std::optional<Calibration>> calibration = calibration_of(options);
  if (!calibration.ok()) return calibration.error();
  std::vector<Variant> variants;
  (options.flag("json") ? terminal.err : terminal.out)
      << loaded->note << calibration_note(options, *calibration);
  const std::string file = *path == "-" ? "standard input" : *path;
  for (const NetworkMode mode : *modes) {
    Variant& variant = variants.emplace_back(with_mode(*loaded, mode));
    const Result<void> checked = check_magnitudes(variant.given);
    if (!checked.ok()) return in_file(file, checked.error());
    if (!*calibration) continue;
    Result<Case> calibrated = with_calibration(variant.given, **calibration);
    if (!calibrated.ok()) return in_file(file, calibrated.error());
    variant.given = std::move(*calibrated);
  }
  if (variants.size() == 1) {
    return simulate_one(file, variants.front(), options, *calibration, terminal);
  }
  for (const std::string_view single : {"json", "trace"}) {
    if (!options.flag(single)) continue;
    return Error{"--" + std::string(single) + " takes one run; found " +
                 std::to_string(variants.size()) + " modes in --network"};
  }
  return simulate_several(file, variants, terminal);
}

}  // namespace

extern const Command kSimulateCommand;
const Command kSimulateCommand = {
    "simulate",
    "runs a case, or one iteration of a scenario, and says what each rank did",
    "FILE",
    "FILE is a case (rrfp.case/1) or a scenario (rrfp.scenario/1); - is standard input.\n"
    "A run that blocks is reported with what waits for what, and ends with status 3. Under a\n"
    "window and a memory budget that may depend on the order in which messages come: what ends\n"
    "here may block in a real run, and the other way round; without a window nothing blocks.\n"
    "What `rrfp calibrate FILE --out C` measured on a machine, --calibration C adds to the tasks\n"
    "and messages: the run as that machine is expected to run it.",
    "rrfp simulate tests/cases/three-chunks.json --trace /tmp/three-chunks.trace.json",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
