// rrfp run: executes a case, or one policy of a scenario, in real time.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <ostream>

#include "executor/capture.h"
#include "experiments/command.h"
#include "experiments/display_units.h"
#include "experiments/input_file.h"
#include "experiments/job_command.h"
#include "experiments/result_report.h"
#include "experiments/run_input.h"
#include "experiments/run_progress.h"
#include "experiments/statistics.h"
#include "experiments/text_list.h"
#include "experiments/text_table.h"
#include "experiments/version.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr std::array kOptions = {
    kPolicyRow,
    kPointRow,
    kIterationsRow,
    kTransportRow,
    kDeviceRow,
    kGpuRow,
    kTraceRow,
    kDecisionsRow,
    OptionRow{"credits", "N", "receive buffers per edge (default: one per microbatch)"},
    kAdaptRow,
    kPayloadRow,
    kPatienceRow,
    kAgreeRow,
    OptionRow{
        "inject", "FAULT,...",
        "rehearse a fault in the first iteration: stall:RANK:TASK:MS, silent:RANK:TASK or "
        "kill:RANK:TASK; TASK as the run writes it, such as 2F1, the forward of microbatch 1 at "
        "stage 2 (stall:2:2F1:50)"},
    OptionRow{"json", "", "print the figures as JSON", OptionRow::Alike::kNot},
    kFileLimitRow,
};

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == by) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

constexpr std::int64_t kLongestStallMs = 86'400'000;  // a day

// "stall:2:2F1:5": the endpoint is lane 0 of the rank in replica 0.
Result<Injected> read_fault(const std::string& text, const RunPlan& plan) {
  const Error wrong{"--inject: found \"" + text +
                    "\"; expected stall:RANK:TASK:MS, silent:RANK:TASK or kill:RANK:TASK"};
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 3) return wrong;
  Injected fault;
  const bool stall = parts[0] == "stall";
  if (parts[0] == "silent") {
    fault.kind = Injected::Kind::kSilent;
  } else if (parts[0] == "kill") {
    fault.kind = Injected::Kind::kKill;
  } else if (!stall) {
    return wrong;
  }
  if (parts.size() != (stall ? 4U : 3U)) return wrong;
  const std::optional<std::int64_t> rank =
      whole_number(parts[1], 0, std::numeric_limits<std::int64_t>::max());
  const Result<Task> task = parse_task(parts[2]);
  if (!task.ok() || !rank) return wrong;
  if (*rank >= plan.grid.ranks) {
    return Error{"--inject: found \"" + text + "\"; there is no rank " + parts[1] +
                 ", ranks are 0 to " + std::to_string(plan.grid.ranks - 1)};
  }
  fault.endpoint = plan.grid.endpoint({0, static_cast<int>(*rank), 0});
  const Program& program = plan.world(0, 0).program();
  fault.task = program.find(*task);
  if (fault.task == kNoTask || program.rank_of(task->stage) != *rank) {
    return Error{"--inject: found \"" + text + "\"; rank " + parts[1] + " has no task " + parts[2]};
  }
  if (!stall) return fault;
  const std::optional<std::int64_t> stall_ms = whole_number(parts[3], 0, kLongestStallMs);
  if (!stall_ms) return wrong;
  fault.ns = *stall_ms * 1'000'000;
  return fault;
}

Result<void> configure(const Options& options, RunPlan& plan) {
  if (Result<void> tuned = tune(options, plan); !tuned.ok()) return tuned;
  const Result<std::int64_t> credits = options.integer_or("credits", 0, 1, 1 << 20);
  if (!credits.ok()) return credits.error();
  plan.core.credits = static_cast<int>(*credits);
  plan.core.adapt_expected = options.flag("adapt");
  plan.core.record = options.text("decisions").has_value();
  const Result<std::vector<std::string>> faults = options.list("inject");
  if (!faults.ok()) return faults.error();
  for (const std::string& text : *faults) {
    const Result<Injected> fault = read_fault(text, plan);
    if (!fault.ok()) return fault.error();
    plan.injected.push_back(*fault);
  }
  return {};
}

std::vector<std::int64_t> makespans(const Capture& capture) {
  std::vector<std::int64_t> all;
  for (const IterationFigures& of : capture.figures()) all.push_back(of.makespan_ns);
  return all;
}

std::string figures_as_json(const Capture& capture, const std::string& policy,
                            const std::string& transport) {
  JsonArray iterations;
  for (const IterationFigures& of : capture.figures()) {
    JsonValue one{JsonObject{}};
    one.add("makespan_ns", JsonValue(of.makespan_ns));
    one.add("iteration_ns", JsonValue(of.iteration_ns));
    one.add("worst_stall_ns", JsonValue(of.worst_stall_ns));
    iterations.push_back(std::move(one));
  }
  JsonValue json{JsonObject{}};
  json.add("policy", JsonValue(policy));
  json.add("transport", JsonValue(transport));
  json.add("iterations", JsonValue(std::move(iterations)));
  return to_text(json, JsonLayout::kReadable) + "\n";
}

std::string figures_as_text(const Capture& capture) {
  const std::vector<std::int64_t> spans = makespans(capture);
  const DisplayUnit unit = time_unit(*std::max_element(spans.begin(), spans.end()));
  TextTable table(
      {"iterations", "median " + std::string(unit.name), "least", "most", "longest stall"});
  std::int64_t stall_ns = 0;
  for (const IterationFigures& of : capture.figures()) {
    stall_ns = std::max(stall_ns, of.worst_stall_ns);
  }
  table.add({std::to_string(spans.size()), in_unit(percentile(spans, 50), unit),
             in_unit(*std::min_element(spans.begin(), spans.end()), unit),
             in_unit(*std::max_element(spans.begin(), spans.end()), unit),
             in_unit(stall_ns, unit)});
  return table.text();
}

// A notice that is off by more than a tenth of the grace misleads.
void warn_of_clocks(const Capture& capture, const RunPlan& plan, Terminal& terminal) {
  const PreparedCase& world = plan.world(0, 0);
  const std::optional<Anticipation>& patience = world.input().policy.anticipation;
  if (!patience || capture.figures().empty()) return;
  const std::int64_t error_ns = capture.figures().back().clock_error_ns;
  std::int64_t shortest_ns = kNever;
  for (TaskId task = 0; task < world.program().task_ids(); ++task) {
    if (!world.program().exists(task)) continue;
    const std::int64_t expected_ns = world.expected_ns()[static_cast<std::size_t>(task)];
    if (expected_ns > 0) shortest_ns = std::min(shortest_ns, expected_ns);  // 0: no wait for it
  }
  if (shortest_ns == kNever) return;
  const std::int64_t grace_ns = shortest_ns / 1000 * patience->grace_permille +
                                shortest_ns % 1000 * patience->grace_permille / 1000;
  if (error_ns * 10 <= grace_ns) return;
  terminal.err << "rrfp run: warning: clocks agree to " << time_with_unit(error_ns)
               << ", more than a tenth of the least grace (" << time_with_unit(grace_ns)
               << "): notices may mislead\n";
}

// What is there before the processes of a job meet.
struct ReadyRun {
  JobInputs inputs;
  RunInput input;
  int policy = 0;
  std::string policy_name;
  PreparedRun prepared;
  DeviceChoice device;

  RunPlan& plan() const { return *prepared.plan; }
};

Result<ReadyRun> get_ready(const Options& options) {
  Result<RunInput> input = read_run_input(options);
  if (!input.ok()) return input.error();
  const Result<int> policy = policy_of(options, *input);
  if (!policy.ok()) return policy.error();
  const Result<std::int64_t> iterations =
      options.integer_or("iterations", input->usual_iterations, 1, kMostIterations);
  if (!iterations.ok()) return iterations.error();
  Result<PreparedRun> prepared = input->prepare(*policy, static_cast<int>(*iterations));
  if (!prepared.ok()) return prepared.error();
  RunPlan& plan = *prepared->plan;
  if (Result<void> set = configure(options, plan); !set.ok()) return set.error();
  Result<DeviceChoice> device = device_of(options);
  if (!device.ok()) return device.error();
  JobInputs inputs = {plan.grid, {input->content}};
  std::string name = input->policy_name(*policy);
  return ReadyRun{std::move(inputs), std::move(*input),    *policy,
                  std::move(name),   std::move(*prepared), *device};
}

void report(const Options& options, const ReadyRun& run, const Job& job, const Capture& capture,
            const std::string& about, Terminal& terminal) {
  if (capture.figures().empty()) return;
  if (options.flag("json")) {
    terminal.out << figures_as_json(capture, run.policy_name, job.name());
    return;
  }
  terminal.out << describe_case(run.prepared.cases[0][0]) << "\non " << run.plan().grid.size()
               << (job.processes() != nullptr ? " processes" : " threads")
               << (about.empty() ? "" : ", " + about) << "\n"
               << figures_as_text(capture);
}

Result<ExitStatus> take_part(const Options& options, Job& job, ReadyRun& run, Terminal& terminal) {
  if (Result<void> can = check_outputs(job, options, {"trace", "decisions"}); !can.ok()) {
    return can.error();
  }
  const Result<Equipment> equipment = equip(run.device, run.plan(), job);
  if (!equipment.ok()) return equipment.error();
  if (job.speaks()) {
    tell_scenario(run.input, run.policy, options, terminal);
    tell_empty_messages(run.input, options, terminal);
  }
  CaptureFiles files;
  files.trace = options.text_or("trace", "");
  files.decisions = options.text_or("decisions", "");
  files.name = run.policy_name;
  files.versions = {{"rrfp", version_text()}, {"transport", job.name()}};
  if (!equipment->about.empty()) files.versions.emplace_back("device", equipment->about);
  auto capture = std::make_shared<Capture>(run.prepared.plan, files);
  const Result<RunOutcome> outcome =
      run_with_progress(job, run.prepared, *equipment, capture, "rrfp run", terminal);
  if (!outcome.ok()) return outcome.error();

  ExitStatus status = ExitStatus::kDone;
  if (outcome->end != RunEnd::kCompleted) status = report_failure(*outcome, "run", terminal);
  if (job.speaks()) {
    if (Result<void> finished = capture->finish(); !finished.ok()) {
      terminal.err << "rrfp run: " << finished.error().message << "\n";
      if (status == ExitStatus::kDone) status = ExitStatus::kWrong;
    }
    warn_of_clocks(*capture, run.plan(), terminal);
    report(options, run, job, *capture, equipment->about, terminal);
  }
  terminal.out << std::flush;
  if (outcome->left_behind) std::_Exit(static_cast<int>(status));
  job.close(*outcome, static_cast<int>(status));
  return status;
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  return run_as_job(
      "run", options, terminal, [&] { return get_ready(options); },
      [&](Job& job, ReadyRun& ready) { return take_part(options, job, ready, terminal); });
}

}  // namespace

extern const Command kRunCommand;
const Command kRunCommand = {
    "run",
    "executes a case or a scenario in real time, over threads, MPI or TCP",
    "FILE",
    "FILE is a case (rrfp.case/1) or a scenario (rrfp.scenario/1). Tasks take their time and\n"
    "compute nothing, or, with --device synthetic, are chains of matrix products on a GPU\n"
    "(`rrfp devices`) that the ranks of one process share, while several processes have one each;\n"
    "messages take the time of the world at least. Under mpirun, srun or torchrun every process "
    "is\n"
    "one rank (and lane, and replica); all must be started alike, files of their own excepted.\n"
    "Where torchrun's agent listens at MASTER_PORT, processes meet at the next port;\n"
    "RRFP_MASTER_PORT names another. A run that\n"
    "blocks ends with status 3, one that breaks with status 1, within twice the patience and two\n"
    "seconds; each worker then says what it waited for, and --trace and --decisions hold the\n"
    "iterations before that.",
    "rrfp run tests/cases/three-chunks.json --trace /tmp/run.jsonl",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
