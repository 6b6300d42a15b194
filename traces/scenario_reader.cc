#include <algorithm>
#include <limits>
#include <set>

#include "scheduler_core/arrival_vote.h"
#include "scheduler_core/schedule.h"
#include "traces/json_cursor.h"
#include "traces/pipeline_file.h"
#include "traces/policy_file.h"
#include "traces/quantity.h"
#include "traces/scenario_budget.h"
#include "traces/scenario_file.h"
#include "traces/scenario_words.h"
#include "traces/torch_csv.h"
#include "traces/variability_file.h"

namespace rrfp {

namespace {

constexpr int kMostChunks = 1 << 8;
constexpr int kMostMicrobatches = 1 << 20;
constexpr int kMostReplicas = 1 << 12;
constexpr int kMostIterations = 10'000'000;
constexpr int kMostInt = std::numeric_limits<int>::max();
constexpr Anticipation kUsualAnticipation{750, 500};

std::vector<StageSpec> placed(Shape shape, int ranks, int chunks) {
  std::vector<StageSpec> stages;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (int i = 0; i < ranks; ++i) {
      StageSpec stage;
      stage.rank = shape == Shape::kV && chunk % 2 == 1 ? ranks - 1 - i : i;
      if (!stages.empty()) stage.predecessors = {static_cast<int>(stages.size()) - 1};
      stages.push_back(std::move(stage));
    }
  }
  return stages;
}

std::vector<StageSpec> read_shape(const JsonCursor& in, int ranks) {
  Shape shape = Shape::kLinear;
  if (const auto word = in.find("shape")) shape = word->choice(kShapes);
  int chunks = shape == Shape::kV ? 2 : 1;
  if (shape == Shape::kLooped) chunks = in.at("chunks").small_integer(1, kMostChunks);
  if (shape != Shape::kLooped && in.find("chunks")) {
    in.fail("\"chunks\" is only given with the shape \"looped\"; found it with \"" +
            std::string(to_word(kShapes, shape)) + "\"");
  }
  return placed(shape, ranks, in.ok() ? chunks : 1);
}

ProgramSpec read_pipeline(const JsonCursor& in) {
  in.only_keys({"ranks", "microbatches", "split_backward", "ordered_accumulation", "shape",
                "chunks", "stages"});
  ProgramSpec spec;
  spec.ranks = in.at("ranks").small_integer(1, kMostRanks);
  spec.microbatches = in.at("microbatches").small_integer(1, kMostMicrobatches);
  spec.split_backward = in.boolean_or("split_backward", false);
  spec.ordered_accumulation = in.boolean_or("ordered_accumulation", false);
  const auto stages = in.find("stages");
  if (stages && (in.find("shape") || in.find("chunks"))) {
    in.fail("a pipeline has either a \"shape\" or \"stages\"; found both");
  }
  spec.stages = stages ? read_stages(*stages, spec.ranks) : read_shape(in, spec.ranks);
  return spec;
}

void read_durations(const JsonCursor& in, Scenario& out) {
  KnownKeys keys({});
  for (const char* name : {"forward", "backward", "input_gradient", "weight_gradient"}) {
    keys.with(name, time_units());
  }
  keys.check(in);
  const int stages = static_cast<int>(out.pipeline.stages.size());
  const auto table = [&](std::string_view name) {
    return need_quantity(in, name, time_units()).table(stages, out.pipeline.microbatches);
  };
  out.forward_ns = table("forward");
  const auto whole = find_quantity(in, "backward", time_units());
  if (!out.pipeline.split_backward) {
    if (whole || !find_quantity(in, "input_gradient", time_units())) {
      out.backward_ns = table("backward");
      if (find_quantity(in, "input_gradient", time_units()) ||
          find_quantity(in, "weight_gradient", time_units())) {
        in.fail("found \"backward\" and one of its parts; give the whole or both parts");
      }
    } else {
      out.backward_ns =
          sum(table("input_gradient"), table("weight_gradient"), stages, out.pipeline.microbatches);
    }
    return;
  }
  if (whole) {
    whole->in.fail(
        "found the whole backward of a pipeline with \"split_backward\"; expected "
        "\"input_gradient\" and \"weight_gradient\"");
  }
  out.backward_ns = table("input_gradient");
  out.weight_ns = table("weight_gradient");
}

ScenarioNetwork read_network(const JsonCursor& in, const ProgramSpec& pipeline) {
  KnownKeys({"mode", "link_delays"})
      .with("bandwidth", rate_units())
      .with("latency", time_units())
      .with("notice", time_units())
      .with("activation", size_units())
      .with("gradient", size_units())
      .with("message", time_units())
      .check(in);
  ScenarioNetwork network;
  const int stages = static_cast<int>(pipeline.stages.size());
  if (const auto mode = in.find("mode")) network.mode = mode->choice(kModes);
  network.bytes_per_second = quantity_or(in, "bandwidth", rate_units(), 0);
  network.latency_ns = quantity_or(in, "latency", time_units(), 0);
  network.notice_ns = quantity_or(in, "notice", time_units(), 0);
  if (const auto message = find_quantity(in, "message", time_units())) {
    network.message_ns = message->value();
  }
  if (const auto bytes = find_quantity(in, "activation", size_units())) {
    network.activation_bytes = bytes->table(stages, pipeline.microbatches);
  }
  network.gradient_bytes = network.activation_bytes;
  if (const auto bytes = find_quantity(in, "gradient", size_units())) {
    network.gradient_bytes = bytes->table(stages, pipeline.microbatches);
  }
  if (const auto list = in.find("link_delays")) {
    std::set<std::pair<int, int>> seen;
    for (const JsonCursor& entry : list->items()) {
      KnownKeys({"from", "to"}).with("delay", time_units()).check(entry);
      LinkDelay delay;
      delay.from_rank = entry.at("from").small_integer(0, pipeline.ranks - 1);
      delay.to_rank = entry.at("to").small_integer(0, pipeline.ranks - 1);
      delay.ns = need_quantity(entry, "delay", time_units()).value();
      if (delay.from_rank == delay.to_rank) entry.fail("a link joins two different ranks");
      if (!seen.emplace(delay.from_rank, delay.to_rank).second) {
        entry.fail("this link has an entry already; each may have one");
      }
      network.link_delays.push_back(delay);
    }
  }
  return network;
}

TensorParallel read_tensor_parallel(const JsonCursor& in) {
  KnownKeys({"lanes", "coordination"})
      .with("vote", time_units())
      .with("announce", time_units())
      .check(in);
  TensorParallel group;
  group.lanes = static_cast<int>(in.integer_or("lanes", 1, {1, ArrivalVote::kMostLanes}));
  if (const auto word = in.find("coordination")) group.coordination = word->choice(kCoordinations);
  group.vote_ns = quantity_or(in, "vote", time_units(), 0);
  group.announce_ns = quantity_or(in, "announce", time_units(), 0);
  return group;
}

DataParallel read_data_parallel(const JsonCursor& in, int stages) {
  KnownKeys({"replicas"})
      .with("gradient_sync", time_units())
      .with("optimizer", time_units())
      .check(in);
  DataParallel group;
  group.replicas = static_cast<int>(in.integer_or("replicas", 1, {1, kMostReplicas}));
  if (const auto sync = find_quantity(in, "gradient_sync", time_units())) {
    group.gradient_sync_ns = sync->per_stage(stages);
  }
  group.optimizer_ns = quantity_or(in, "optimizer", time_units(), 0);
  return group;
}

// One for all stages, or one per stage.
std::vector<double> read_fractions(const JsonCursor& in, std::size_t stages) {
  if (in.value().array() == nullptr) return {read_fraction(in, 1)};
  std::vector<double> fractions;
  for (const JsonCursor& item : in.items(stages, "stage")) {
    fractions.push_back(read_fraction(item, 1));
  }
  return fractions;
}

ScenarioMemory read_memory(const JsonCursor& in, const ProgramSpec& pipeline) {
  KnownKeys keys({"weight_stash_fraction", "budget_activations"});
  keys.with("activation", size_units()).with("budget", size_units()).check(in);
  ScenarioMemory memory;
  if (const auto bytes = find_quantity(in, "activation", size_units())) {
    memory.activation_bytes =
        bytes->table(static_cast<int>(pipeline.stages.size()), pipeline.microbatches);
  }
  if (const auto fraction = in.find("weight_stash_fraction")) {
    memory.weight_stash_fraction = read_fractions(*fraction, pipeline.stages.size());
  }
  memory.budget = read_budget(in, pipeline).value_or(Budget());
  return memory;
}

// A torch schedule file as an order; it must have one row per rank.
HintSpec read_csv_hint(const JsonCursor& in, const std::string& folder, int ranks) {
  in.only_keys({"csv", "b_means"});
  const std::string path = in.at("csv").string();
  constexpr Choice<BMeans> kMeanings[] = {{"full", BMeans::kFull}, {"input", BMeans::kInput}};
  TorchCsvOptions options;
  if (const auto word = in.find("b_means")) options.b_means = word->choice(kMeanings);
  HintSpec hint;
  if (!in.ok()) return hint;
  const bool absolute = path.starts_with('/');
  const Result<TorchSchedule> torch = read_torch_csv(absolute ? path : folder + path, options);
  if (!torch.ok()) {
    in.fail(torch.error().message);
  } else if (torch->rows.size() != static_cast<std::size_t>(ranks)) {
    in.fail("found a schedule of " + std::to_string(torch->rows.size()) + " ranks; expected " +
            std::to_string(ranks));
  } else {
    TorchPlan plan = to_plan(*torch);
    hint.name.clear();
    hint.order = std::move(plan.schedule.ranks);
    hint.messages = std::move(plan.messages);
  }
  return hint;
}

// A named schedule as it is where backwards are not split, for a pipeline where they are: each
// backward that has a weight gradient is one task.
HintSpec read_whole_hint(const JsonCursor& in, const ProgramSpec& pipeline) {
  in.only_keys({"name", "group", "seed", "whole_backward"});
  HintSpec named;
  named.name = in.at("name").string();
  named.group = static_cast<int>(in.integer_or("group", 0, {1, kMostInt}));
  named.seed = static_cast<std::uint64_t>(in.integer_or("seed", 0));
  if (!in.at("whole_backward").boolean() || !pipeline.split_backward || !in.ok()) return named;
  ProgramSpec whole = pipeline;
  whole.split_backward = false;
  const Result<Program> program = Program::create(std::move(whole));
  if (!program.ok()) {
    in.fail(program.error().message);
    return named;
  }
  Result<Schedule> schedule = make_schedule(named, *program);
  if (!schedule.ok()) {
    in.fail(schedule.error().message);
    return named;
  }
  HintSpec hint;
  hint.order = std::move(schedule->ranks);
  hint.name = named.name + " with whole backwards";  // for people: the order is what counts
  for (std::vector<Task>& tasks : hint.order) {
    for (Task& task : tasks) {
      const Backward backward = pipeline.stages[static_cast<std::size_t>(task.stage)].backward;
      const bool alone = task.kind == Kind::kBackward && backward == Backward::kInput;
      if (alone) task.kind = Kind::kInputGradient;
    }
  }
  return hint;
}

HintSpec read_any_hint(const JsonCursor& in, const std::string& folder,
                       const ProgramSpec& pipeline) {
  if (in.value().find("csv") != nullptr) return read_csv_hint(in, folder, pipeline.ranks);
  if (in.value().find("whole_backward") != nullptr) return read_whole_hint(in, pipeline);
  if (in.value().string() == nullptr) return read_hint(in, pipeline.ranks);
  HintSpec hint;
  hint.name = in.string();
  return hint;
}

int read_window(const JsonCursor& in) {
  const auto window = in.find("window");
  const auto fixed = in.find("fixed");
  if (window && fixed) in.fail("found \"window\" and \"fixed\"; \"fixed\" is short for a window");
  if (fixed) return fixed->boolean() ? 1 : kNoWindow;
  if (!window) return kNoWindow;
  if (const std::string* word = window->value().string(); word != nullptr && *word == "none") {
    return kNoWindow;
  }
  if (window->value().integer() == nullptr || *window->value().integer() < 1) {
    window->expected("\"none\" or an integer of at least 1");
    return kNoWindow;
  }
  return window->small_integer(1, kMostInt);
}

ScenarioPolicy read_scenario_policy(const JsonCursor& in, const std::string& folder,
                                    const ProgramSpec& pipeline) {
  KnownKeys keys({"name", "hint", "window", "fixed", "budget_activations", "anticipation",
                  "arrange", "network_mode"});
  keys.with("budget", size_units()).check(in);
  ScenarioPolicy out;
  out.name = in.at("name").string();
  if (in.ok() && out.name.empty()) in.at("name").expected("a name");
  if (const auto hint = in.find("hint")) {
    out.policy.hint = read_any_hint(*hint, folder, pipeline);
  }
  out.policy.window = read_window(in);
  if (const auto arrange = in.find("arrange")) out.policy.arrangement = read_arrangement(*arrange);
  if (const auto anticipation = in.find("anticipation")) {
    if (const bool* usual = anticipation->value().boolean()) {
      if (*usual) out.policy.anticipation = kUsualAnticipation;
    } else {
      out.policy.anticipation = read_anticipation(*anticipation);
    }
  }
  if (const auto mode = in.find("network_mode")) out.mode = mode->choice(kModes);
  out.budget = read_budget(in, pipeline);
  return out;
}

void read_policies(const JsonCursor& in, const std::string& folder, Scenario& out) {
  std::set<std::string> names;
  for (const JsonCursor& entry : in.at("policies").items()) {
    ScenarioPolicy policy = read_scenario_policy(entry, folder, out.pipeline);
    if (!in.ok()) return;
    if (!names.insert(policy.name).second) {
      entry.at("name").fail("two policies are called \"" + policy.name + "\"; names must differ");
    }
    out.policies.push_back(std::move(policy));
  }
  if (in.ok() && out.policies.empty()) in.at("policies").expected("at least one policy");
  const auto baseline = in.find("baseline");
  if (!baseline) return;
  const std::string wanted = baseline->string();
  for (std::size_t i = 0; i < out.policies.size(); ++i) {
    if (out.policies[i].name == wanted) {
      out.baseline = static_cast<int>(i);
      return;
    }
  }
  baseline->expected("the name of one of the policies");
}

void read_values(const JsonCursor& in, const std::string& folder, Scenario& out) {
  const int stages = static_cast<int>(out.pipeline.stages.size());
  read_durations(in.at("durations"), out);
  if (const auto ready = find_quantity(in, "input_ready", time_units())) {
    const auto count = static_cast<std::size_t>(out.pipeline.microbatches);
    for (const JsonCursor& item : ready->in.items(count, "microbatch")) {
      out.input_ready_ns.push_back(Quantity{item, ready->scale}.value());
    }
  }
  out.dispatch_ns = quantity_or(in, "dispatch", time_units(), 0);
  if (const auto spacing = find_quantity(in, "iteration_spacing", time_units())) {
    out.iteration_spacing_ns = spacing->value();
  }
  out.queue_depth = static_cast<int>(in.integer_or("queue_depth", 1, {1, kMostInt}));
  if (const auto group = in.find("tensor_parallel")) {
    out.tensor_parallel = read_tensor_parallel(*group);
  }
  if (const auto group = in.find("data_parallel")) {
    out.data_parallel = read_data_parallel(*group, stages);
  }
  if (const auto network = in.find("network")) {
    out.network = read_network(*network, out.pipeline);
  }
  if (const auto memory = in.find("memory")) out.memory = read_memory(*memory, out.pipeline);
  if (const auto list = in.find("variability")) read_variability(*list, folder, out);
}

std::string folder_of(const std::string& file) { return file.substr(0, file.rfind('/') + 1); }

}  // namespace

Result<Scenario> read_scenario(const JsonDocument& document) {
  JsonErrors errors(document.file);
  const JsonCursor in(errors, document.root);
  KnownKeys({"schema", "name", "seed", "iterations", "pipeline", "durations", "queue_depth",
             "tensor_parallel", "data_parallel", "network", "memory", "variability", "policies",
             "baseline", "grid"})
      .with("input_ready", time_units())
      .with("dispatch", time_units())
      .with("iteration_spacing", time_units())
      .check(in);
  in.at("schema").choice({Choice<int>{kScenarioSchema, 0}});
  Scenario out;
  out.name = in.string_or("name", "");
  out.seed = static_cast<std::uint64_t>(in.integer_or("seed", 0));
  out.iterations = static_cast<int>(in.integer_or("iterations", 1, {1, kMostIterations}));
  out.pipeline = read_pipeline(in.at("pipeline"));
  if (!errors.ok()) return errors.status().error();
  if (out.pipeline.stages.size() > kMostStages) {
    in.at("pipeline").fail("more than " + std::to_string(kMostStages) + " stages");
  }
  if (const Result<Program> program = Program::create(out.pipeline); !program.ok()) {
    in.at("pipeline").fail(program.error().message);
  }
  if (!errors.ok()) return errors.status().error();
  read_values(in, folder_of(document.file), out);
  read_policies(in, folder_of(document.file), out);
  if (!errors.ok()) return errors.status().error();
  if (const Result<std::vector<GridAxis>> grid = read_grid(document); !grid.ok()) {
    return grid.error();
  }
  return out;
}

Result<Scenario> read_scenario_file(const std::string& path, std::size_t limit_bytes) {
  const Result<JsonDocument> document =
      read_json_file(path, {.limit_bytes = limit_bytes, .comments = true});
  if (!document.ok()) return document.error();
  return read_scenario(*document);
}

}  // namespace rrfp
