#include "experiments/sweep_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>

#include "executor/calibration_file.h"
#include "experiments/display_units.h"
#include "experiments/preset_report.h"
#include "experiments/result_report.h"
#include "experiments/text_list.h"
#include "scheduler_core/nearest.h"
#include "traces/atomic_file.h"
#include "traces/json_writer.h"
#include "traces/policy_file.h"
#include "traces/text_file.h"

namespace rrfp {

namespace {

constexpr std::string_view kRunsHeader =
    "point,iteration,policy,completed,iteration_ns,busy_ns,peak_bytes,peak_inbox_bytes,"
    "all_ranks_bytes,policy_name\n";
constexpr const char* kCalibrationName = "/calibration.json";
constexpr std::size_t kRunsNumbers = 9;  // the columns before the name

JsonValue decimal(double value) { return JsonValue(Decimal{fixed(value, 6)}); }

// As RFC 4180 has it.
std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string csv_row(std::initializer_list<std::int64_t> numbers) {
  std::string row;
  for (const std::int64_t number : numbers) row += std::to_string(number) + ",";
  return row;
}

std::string runs_csv(const Sweep& sweep) {
  std::string text(kRunsHeader);
  for (std::size_t p = 0; p < sweep.points.size(); ++p) {
    const SweepPoint& point = sweep.points[p];
    for (std::size_t iteration = 0; iteration < point.done.size(); ++iteration) {
      if (!point.done[iteration]) continue;
      for (std::size_t policy = 0; policy < point.runs.size(); ++policy) {
        const SweepRun& run = point.runs[policy][iteration];
        text += csv_row({static_cast<std::int64_t>(p), static_cast<std::int64_t>(iteration),
                         static_cast<std::int64_t>(policy), run.completed ? 1 : 0, run.iteration_ns,
                         run.busy_ns, run.peak_bytes, run.peak_inbox_bytes, run.all_ranks_bytes}) +
                csv_text(point.scenario.policies[policy].name) + "\n";
      }
    }
  }
  return text;
}

JsonValue policy_to_json(const PolicySummary& summary, const Scenario& scenario,
                         const ScenarioPolicy& policy) {
  JsonValue out{JsonObject()};
  out.add("name", JsonValue(summary.name));
  // An order that is spelled out has no name of its own.
  const HintSpec& hint = policy.policy.hint;
  out.add("hint", hint.order.empty() ? JsonValue(hint.name) : JsonValue());
  out.add("fixed", JsonValue(summary.fixed));
  if (summary.misses_latency_draws) out.add("misses_latency_draws", JsonValue(true));
  out.add("anticipates", JsonValue(policy.policy.anticipation.has_value()));
  out.add("arrange", arrangement_to_json(policy.policy.arrangement));
  out.add("network", JsonValue(mode_name(policy.mode.value_or(scenario.network.mode))));
  out.add("runs", JsonValue(summary.runs));
  out.add("blocked", JsonValue(summary.blocked));
  if (summary.blocked == 0) {
    out.add("mean_ns", decimal(summary.mean_ns));
    out.add("p50_ns", JsonValue(summary.p50_ns));
    out.add("p95_ns", JsonValue(summary.p95_ns));
    out.add("idle_share", decimal(summary.idle_share));
  }
  if (summary.speedup) out.add("speedup", decimal(*summary.speedup));
  if (summary.speedup_interval) {
    out.add("speedup_interval", JsonValue(JsonArray{decimal(summary.speedup_interval->low),
                                                    decimal(summary.speedup_interval->high)}));
  }
  if (summary.speedup_at_memory) {
    out.add("speedup_at_memory", decimal(*summary.speedup_at_memory));
    out.add("fixed_at_memory", JsonValue(summary.fixed_at_memory));
  }
  out.add("peak_bytes", JsonValue(summary.memory.bytes));
  out.add("peak_inbox_bytes", JsonValue(summary.memory.inbox_bytes));
  out.add("all_ranks_bytes", JsonValue(summary.memory.all_ranks_bytes));
  out.add("memory_against_baseline", JsonValue(word(summary.against_baseline)));
  return out;
}

std::string summary_csv(const Sweep& sweep,
                        const std::vector<std::vector<PolicySummary>>& summaries) {
  std::string text = "point";
  for (const GridAxis& axis : sweep.axes) text += "," + csv_text(axis.pointer);
  text +=
      ",policy,runs,blocked,mean_ns,p50_ns,p95_ns,idle_share,speedup,speedup_low,speedup_high,"
      "speedup_at_memory,fixed_at_memory,peak_bytes,peak_inbox_bytes,all_ranks_bytes,"
      "memory_against_baseline";
  // Only where there are any, so that files without stay as they are.
  const bool presets =
      std::any_of(sweep.points.begin(), sweep.points.end(),
                  [](const SweepPoint& point) { return !presets_of(point.scenario).empty(); });
  text += presets ? ",presets\n" : "\n";
  const auto maybe = [](bool there, double value) { return there ? fixed(value, 6) : ""; };
  for (std::size_t p = 0; p < summaries.size(); ++p) {
    for (const PolicySummary& summary : summaries[p]) {
      text += std::to_string(p);
      for (const JsonValue& value : sweep.points[p].values) {
        text += "," + csv_text(to_text(value, JsonLayout::kCompact));
      }
      const bool timed = summary.blocked == 0;
      const Interval interval = summary.speedup_interval.value_or(Interval());
      const bool bounded = summary.speedup_interval.has_value();
      text += "," + csv_text(summary.name) + "," + std::to_string(summary.runs) + "," +
              std::to_string(summary.blocked) + "," + maybe(timed, summary.mean_ns) + "," +
              (timed ? std::to_string(summary.p50_ns) : "") + "," +
              (timed ? std::to_string(summary.p95_ns) : "") + "," +
              maybe(timed, summary.idle_share) + "," +
              maybe(summary.speedup.has_value(), summary.speedup.value_or(0)) + "," +
              maybe(bounded, interval.low) + "," + maybe(bounded, interval.high) + "," +
              maybe(summary.speedup_at_memory.has_value(), summary.speedup_at_memory.value_or(0)) +
              "," + csv_text(summary.fixed_at_memory) + "," +
              csv_row({summary.memory.bytes, summary.memory.inbox_bytes,
                       summary.memory.all_ranks_bytes}) +
              std::string(word(summary.against_baseline)) +
              (presets ? "," + csv_text(describe_presets(sweep.points[p].scenario)) : "") + "\n";
    }
  }
  return text;
}

std::string scenario_name(const Sweep& sweep, std::size_t point) {
  if (sweep.points.size() == 1) return "scenario.json";
  return "scenario-" + std::to_string(point) + ".json";
}

std::string scenario_text(const Scenario& scenario) {
  return to_text(scenario_to_json(scenario), JsonLayout::kReadable) + "\n";
}

// One row of runs.csv put where it belongs; false where it belongs nowhere.
bool take_row(std::string_view row, Sweep& sweep) {
  std::array<std::int64_t, kRunsNumbers> n{};
  for (std::int64_t& number : n) {
    const char* end = row.data() + row.size();
    const auto [stop, error] = std::from_chars(row.data(), end, number);
    if (error != std::errc{} || stop == end || *stop != ',' || number < 0) return false;
    row.remove_prefix(static_cast<std::size_t>(stop - row.data()) + 1);
  }
  const auto at = [&n](std::size_t i) { return static_cast<std::size_t>(n[i]); };
  if (at(0) >= sweep.points.size()) return false;
  SweepPoint& point = sweep.points[at(0)];
  if (at(1) >= point.done.size() || at(2) >= point.runs.size()) return false;
  point.runs[at(2)][at(1)] = {n[3] == 1, n[4], n[5], n[6], n[7], n[8]};
  // Rows of an iteration stand together, the last policy's last.
  if (at(2) + 1 == point.runs.size()) point.done[at(1)] = true;
  return true;
}

}  // namespace

JsonValue summary_to_json(const Sweep& sweep,
                          const std::vector<std::vector<PolicySummary>>& summaries) {
  const Scenario& first = sweep.points.front().scenario;
  JsonValue out{JsonObject()};
  out.add("schema", JsonValue(kSweepSchema));
  out.add("name", JsonValue(first.name));
  out.add("complete", JsonValue(sweep.complete()));
  out.add("resamples", JsonValue(kResamples));
  if (sweep.calibration) out.add("calibration", calibration_to_json(*sweep.calibration));
  JsonArray axes;
  for (const GridAxis& axis : sweep.axes) axes.emplace_back(axis.pointer);
  out.add("axes", JsonValue(std::move(axes)));
  JsonArray points;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    const Scenario& scenario = point.scenario;
    const std::vector<std::int64_t>& activations = scenario.memory.activation_bytes.values;
    JsonValue one{JsonObject()};
    one.add("values", JsonValue(JsonArray(point.values)));
    one.add("ranks", JsonValue(scenario.pipeline.ranks));
    one.add("microbatches", JsonValue(scenario.pipeline.microbatches));
    one.add("seed", JsonValue(static_cast<std::int64_t>(scenario.seed)));
    one.add("iterations", JsonValue(scenario.iterations));
    one.add("iterations_done", JsonValue(point.iterations_done()));
    one.add("activation_bytes",
            JsonValue(*std::max_element(activations.begin(), activations.end())));
    one.add("baseline",
            JsonValue(scenario.policies[static_cast<std::size_t>(scenario.baseline)].name));
    if (!presets_of(scenario).empty()) one.add("presets", preset_uses_to_json(scenario));
    JsonArray policies;
    for (std::size_t policy = 0; policy < summaries[i].size(); ++policy) {
      policies.push_back(policy_to_json(summaries[i][policy], scenario, scenario.policies[policy]));
    }
    one.add("policies", JsonValue(std::move(policies)));
    points.push_back(std::move(one));
  }
  out.add("points", JsonValue(std::move(points)));
  return out;
}

namespace {

// "scenario.json", "scenario-12.json".
bool is_scenario_name(const std::string& name) {
  constexpr std::string_view kBegin = "scenario";
  constexpr std::string_view kEnd = ".json";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  if (name.size() < kBegin.size() + kEnd.size()) return false;
  const std::string number = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  return number.empty() || (number.size() > 1 && number.front() == '-' &&
                            number.find_first_not_of("0123456789", 1) == number.npos);
}

// Of a folder with a sweep: the resolved scenarios that it names.
std::vector<std::string> scenario_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename().string();
    if (is_scenario_name(name)) files.push_back(folder + "/" + name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Runs of another scenario must never stand beside this one, whenever this is cut short.
Result<void> remove_earlier_sweep(const std::string& folder) {
  std::vector<std::string> files = scenario_files(folder);
  files.insert(files.begin(), {folder + "/runs.csv", folder + kCalibrationName});
  for (const std::string& file : files) {
    std::error_code failed;
    std::filesystem::remove(file, failed);
    if (failed) return Error{file + ": cannot be replaced: " + failed.message()};
  }
  return {};
}

// "\"my job\" (4 points, 200 iterations)".
std::string describe_worlds(const Scenario& scenario, std::size_t points) {
  return in_quotes(scenario.name) + " (" +
         (points == 1 ? "" : std::to_string(points) + " points, ") +
         counted(scenario.iterations, "iteration") + ")";
}

}  // namespace

Result<void> make_sweep_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Error{folder + ": cannot make the folder: " + failed.message()};
  return {};
}

Result<void> write_sweep(const std::string& folder, const Sweep& sweep,
                         const std::vector<std::vector<PolicySummary>>& summaries) {
  if (Result<void> made = make_sweep_folder(folder); !made.ok()) return made;
  if (Result<void> removed = remove_earlier_sweep(folder); !removed.ok()) return removed;
  const auto write = [&folder](const std::string& name, const std::string& text) {
    return write_file_atomically(folder + "/" + name, text);
  };
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    Result<void> written = write(scenario_name(sweep, i), scenario_text(sweep.points[i].scenario));
    if (!written.ok()) return written;
  }
  if (sweep.calibration) {
    Result<void> written = write_calibration_file(folder + kCalibrationName, *sweep.calibration);
    if (!written.ok()) return written;
  }
  const std::array<std::pair<const char*, std::string>, 3> files = {{
      {"runs.csv", runs_csv(sweep)},
      {"summary.csv", summary_csv(sweep, summaries)},
      {"summary.json", to_text(summary_to_json(sweep, summaries), JsonLayout::kReadable) + "\n"},
  }};
  for (const auto& [name, text] : files) {
    Result<void> written = write(name, text);
    if (!written.ok()) return written;
  }
  return {};
}

namespace {

// Runs of other worlds must not be mixed with those of this sweep.
Result<void> check_same_calibration(const std::string& folder, const Sweep& sweep,
                                    const std::string& ways) {
  const std::string path = folder + kCalibrationName;
  const bool there = std::filesystem::exists(path);
  if (!there && !sweep.calibration) return {};
  if (there && sweep.calibration) {
    const Result<Calibration> begun_with = read_calibration_file(path);
    if (!begun_with.ok()) return begun_with.error();
    if (*begun_with == *sweep.calibration) return {};
  }
  return Error{path +
               (there ? ": the sweep was begun with this calibration"
                      : ": not there, so the sweep was begun without a calibration") +
               ways};
}

constexpr std::size_t kNoLimit = std::size_t{1} << 40;

// `iterations`: as if the sweep had so many; none: as many as it has.
bool holds_scenarios_of(const std::string& folder, const Sweep& sweep,
                        std::optional<int> iterations = std::nullopt) {
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    Scenario scenario = sweep.points[i].scenario;
    if (iterations) scenario.iterations = *iterations;
    const Result<std::string> text =
        read_text_file(folder + "/" + scenario_name(sweep, i), kNoLimit);
    if (!text.ok() || *text != scenario_text(scenario)) return false;
  }
  return true;
}

// `files`: the scenarios of other worlds than those of the sweep.
std::string describe_others(const std::string& folder, const std::vector<std::string>& files,
                            const Sweep& sweep) {
  const Scenario& scenario = sweep.points.front().scenario;
  if (!std::filesystem::exists(folder + "/runs.csv")) {
    return files.front() +
           ": would be replaced by that of the sweep, and is not of a sweep's "
           "results, for there is no runs.csv beside it";
  }
  const Result<Scenario> there = read_scenario_file(files.front(), kNoLimit);
  if (there.ok() && files.size() == sweep.points.size() &&
      holds_scenarios_of(folder, sweep, there->iterations)) {
    return folder + ": holds the results of this scenario with " +
           counted(there->iterations, "iteration") + "; this is with " +
           std::to_string(scenario.iterations) + "; give --iterations " +
           std::to_string(there->iterations) + " (and --resume, where it was cut short)";
  }
  return folder + ": holds the results of another scenario, " +
         (there.ok() ? describe_worlds(*there, files.size()) : files.front()) + "; this is " +
         describe_worlds(scenario, sweep.points.size());
}

}  // namespace

Result<void> check_sweep_inputs(const std::string& folder, const Sweep& sweep,
                                std::span<const NamedFile> inputs) {
  // The same is written again.
  if (holds_scenarios_of(folder, sweep)) return {};
  std::vector<NamedFile> replaced;
  for (const std::string& file : scenario_files(folder)) replaced.push_back({"--out", file});
  for (const char* name : {"/runs.csv", "/summary.csv", "/summary.json", kCalibrationName}) {
    replaced.push_back({"--out", folder + name});
  }
  return check_files_apart(inputs, replaced);
}

Result<void> check_sweep_folder(const std::string& folder, const Sweep& sweep) {
  const std::vector<std::string> files = scenario_files(folder);
  const std::string ways = "; take another folder, or --force to replace them";
  if (files.empty()) {
    if (!std::filesystem::exists(folder + "/runs.csv")) return {};
    return Error{folder + "/runs.csv: results of a sweep, without its scenario" + ways};
  }
  if (files.size() == sweep.points.size() && holds_scenarios_of(folder, sweep)) {
    return check_same_calibration(folder, sweep, ways);
  }
  return Error{describe_others(folder, files, sweep) + ways};
}

Result<void> resume_sweep(const std::string& folder, Sweep& sweep) {
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const std::string path = folder + "/" + scenario_name(sweep, i);
    const Result<std::string> text = read_text_file(path, kNoLimit);
    if (!text.ok()) return Error{text.error().message + "; there is nothing to resume"};
    if (*text == scenario_text(sweep.points[i].scenario)) continue;
    return Error{path +
                 ": a sweep of another scenario; resume with the scenario, the options and "
                 "the program that it was begun with, or take another folder"};
  }
  const std::string ways = "; resume with the same --calibration, or take another folder";
  if (Result<void> same = check_same_calibration(folder, sweep, ways); !same.ok()) return same;
  const std::string path = folder + "/runs.csv";
  const Result<std::string> text = read_text_file(path, kNoLimit);
  if (!text.ok()) return text.error();
  std::string_view rest = *text;
  const auto wrong = [&path](int line) {
    return Error{path + ": line " + std::to_string(line) + " is not what a sweep writes"};
  };
  if (!rest.starts_with(kRunsHeader)) return wrong(1);
  rest.remove_prefix(kRunsHeader.size());
  for (int line = 2; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (!take_row(rest.substr(0, end), sweep)) return wrong(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace rrfp
