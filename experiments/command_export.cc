// rrfp export: a simulated scenario as a file that others record.
#include <algorithm>
#include <array>
#include <ostream>

#include "experiments/command.h"
#include "experiments/input_file.h"
#include "experiments/native_export.h"
#include "experiments/progress_bar.h"
#include "traces/scenario_file.h"
#include "traces/scenario_resolve.h"

namespace rrfp {

namespace {

constexpr std::array<std::string_view, 1> kFormats = {"native-trace"};

constexpr std::array kOptions = {
    OptionRow{"to", "FORMAT", "native-trace (default)"},
    OptionRow{"policy", "NAME", "which of the scenario's policies (default: its baseline)"},
    kFileLimitRow,
};

Result<int> policy_index(const Options& options, const Scenario& scenario) {
  const std::optional<std::string> wanted = options.text("policy");
  if (!wanted) return scenario.baseline;
  std::vector<std::string_view> names;
  for (const ScenarioPolicy& policy : scenario.policies) names.push_back(policy.name);
  const auto found = std::find(names.begin(), names.end(), *wanted);
  if (found == names.end()) return not_one_of("--policy", *wanted, names);
  return static_cast<int>(found - names.begin());
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  if (options.operands().size() != 2) {
    return Error{"expected two files, SCENARIO and OUT; found " +
                 std::to_string(options.operands().size())};
  }
  const Result<std::string> format = options.word_or("to", kFormats.front(), kFormats);
  if (!format.ok()) return format.error();
  const std::string& in = options.operands()[0];
  const std::string& out = options.operands()[1];
  const Result<std::size_t> limit = file_limit(options);
  if (!limit.ok()) return limit.error();
  constexpr std::array kSchemas = {kScenarioSchema};
  const Result<InputFile> input = read_input(in, *limit, kSchemas);
  if (!input.ok()) return input.error();
  Result<Scenario> scenario = read_scenario(input->document);
  if (!scenario.ok()) return scenario.error();
  const Result<int> policy = policy_index(options, *scenario);
  if (!policy.ok()) return policy.error();
  const int iterations = scenario->iterations;
  const auto in_file = [&](const Error& error) {
    const bool named = error.message.starts_with(out) || error.message.starts_with(in);
    return named ? error : Error{input->document.file + ": " + error.message};
  };
  const Result<ScenarioResolver> resolver = ScenarioResolver::create(std::move(scenario).value());
  if (!resolver.ok()) return in_file(resolver.error());
  {
    ProgressBar progress(terminal.err, is_terminal_stderr(), static_cast<std::size_t>(iterations));
    const Result<void> written =
        export_native_trace(*resolver, *policy, out, [&progress] { progress.add(); });
    if (!written.ok()) return in_file(written.error());
  }
  terminal.out << out << ": " << iterations << (iterations == 1 ? " iteration" : " iterations")
               << " of " << resolver->scenario().data_parallel.replicas << " replicas\n";
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kExportCommand;
const Command kExportCommand = {
    "export",
    "simulates a scenario and writes the trace that its job would have recorded",
    "SCENARIO OUT",
    "native-trace: all iterations and replicas under one policy (rrfp.trace/1), for `rrfp info`\n"
    "and `rrfp replay`. Compressed where OUT ends in .gz or .zst.",
    "rrfp export experiments/noisy-1f1b.json noisy-1f1b.trace.jsonl.zst",
    kOptions,
    2,
    run,
};

}  // namespace rrfp
