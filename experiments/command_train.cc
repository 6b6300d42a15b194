// rrfp train: trains a small transformer on a text, in the pipeline of a case
// or a scenario.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ostream>

#include "executor/capture.h"
#include "executor/equipment.h"
#include "executor/training_run.h"
#include "experiments/command.h"
#include "experiments/input_file.h"
#include "experiments/job_command.h"
#include "experiments/run_input.h"
#include "experiments/run_progress.h"
#include "experiments/version.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr std::array kOptions = {
    OptionRow{"text", "FILE", "what to learn: any file; its bytes are the tokens",
              OptionRow::Alike::kWhetherGiven, OptionRow::File::kRead},
    kPolicyRow,
    kPointRow,
    OptionRow{"steps", "N", "of the optimizer (default 20)"},
    OptionRow{"width", "N", "numbers per position (default 32)"},
    OptionRow{"heads", "N", "of attention (default 4)"},
    OptionRow{"mlp-width", "N", "hidden numbers of an MLP (default 64)"},
    OptionRow{"blocks", "N", "of the model, shared out over the stages (default: one each)"},
    OptionRow{"shortest", "N", "positions of the shortest sequence (default: the longest)"},
    OptionRow{"longest", "N", "positions of the longest sequence (default 64)"},
    OptionRow{"learning-rate", "X", "of the optimizer (default 0.1)"},
    OptionRow{"momentum", "X", "of the optimizer (default 0.9)"},
    OptionRow{"seed", "N", "of weights and samples (default 1)"},
    OptionRow{"paced", "", "a task takes at least as long as FILE says"},
    OptionRow{"check", "", "train serially as well, and compare losses and weights"},
    OptionRow{"device", "NAME",
              "cpu (default), or cuda: the ranks share one GPU, or, as processes, have one each"},
    kGpuRow,
    OptionRow{"tf32", "", "with --device cuda: matrix products in TF32, faster and coarser"},
    kTransportRow,
    kTraceRow,
    kAdaptRow,
    kDecisionsRow,
    kPatienceRow,
    kAgreeRow,
    OptionRow{"json", "", "print losses, digest and activation memory as JSON",
              OptionRow::Alike::kNot},
    kFileLimitRow,
};

struct IntegerField {
  const char* option;
  int* to;
  int least;
};

Result<TrainingSetup> read_setup(const Options& options, const Program& program) {
  TrainingSetup setup;
  setup.steps = 20;
  setup.spec.model.blocks = program.stages();
  setup.spec.data.shortest = 0;
  const IntegerField fields[] = {
      {"steps", &setup.steps, 1},
      {"width", &setup.spec.model.width, 1},
      {"heads", &setup.spec.model.heads, 1},
      {"mlp-width", &setup.spec.model.mlp_width, 1},
      {"blocks", &setup.spec.model.blocks, 1},
      {"shortest", &setup.spec.data.shortest, 1},
      {"longest", &setup.spec.data.longest, 1},
  };
  for (const IntegerField& field : fields) {
    const Result<std::optional<std::int64_t>> value =
        options.integer(field.option, field.least, kMostIterations);
    if (!value.ok()) return value.error();
    if (*value) *field.to = static_cast<int>(**value);
  }
  if (setup.spec.data.shortest == 0) setup.spec.data.shortest = setup.spec.data.longest;
  OptimizerSpec& optimizer = setup.spec.optimizer;
  const Result<double> rate = options.number_or("learning-rate", optimizer.learning_rate, 0);
  if (!rate.ok()) return rate.error();
  const Result<double> momentum = options.number_or("momentum", optimizer.momentum, 0);
  if (!momentum.ok()) return momentum.error();
  optimizer = {*rate, *momentum};
  const Result<std::int64_t> seed = options.integer_or("seed", 1);
  if (!seed.ok()) return seed.error();
  setup.spec.model.seed = setup.spec.data.seed = static_cast<std::uint64_t>(*seed);
  setup.paced = options.flag("paced");
  return setup;
}

Result<TrainingChoice> training_choice(const Options& options) {
  constexpr std::array<std::string_view, 2> kWords = {"cpu", "cuda"};
  const Result<std::string> word = options.word_or("device", "cpu", kWords);
  if (!word.ok()) return word.error();
  const Result<std::optional<int>> gpu = gpu_of(options);
  if (!gpu.ok()) return gpu.error();
  const TrainingChoice choice{*word == "cuda", *gpu, options.flag("tf32")};
  if (choice.tf32 && !choice.cuda) return Error{"--tf32 needs --device cuda"};
  if (choice.gpu && !choice.cuda) return Error{"--gpu needs --device cuda"};
  return choice;
}

// What is wrong with the model is not in the file: options say how large it is.
Error with_options(const std::string& file, const Error& error) {
  constexpr std::string_view kOfModel = "model: ";
  const bool of_model = error.message.starts_with(kOfModel);
  return Error{
      file + ": " + error.message +
      (of_model ? "; --heads, --width, --mlp-width and --blocks say how large the model is" : "")};
}

Result<TrainingRun> prepare(const Options& options, const RunInput& input, int policy,
                            const TrainingChoice& choice, std::string text) {
  const CaseOf case_of = [&](int step, int replica) -> Result<Case> {
    if (input.single) return *input.single;
    return input.scenario->resolve(policy, step, replica);
  };
  const Result<Case> first = case_of(0, 0);
  if (!first.ok()) return first.error();
  Result<TrainingSetup> setup = read_setup(options, first->program);
  if (!setup.ok()) return setup.error();
  Result<TrainingFootprint> footprint = footprint_of(choice);
  if (!footprint.ok()) return footprint.error();
  setup->footprint = std::move(*footprint);
  if (input.scenario) setup->replicas = input.scenario->scenario().data_parallel.replicas;
  Result<TrainingRun> run = prepare_training(*setup, std::move(text), case_of);
  if (!run.ok()) return with_options(input.name, run.error());
  RunPlan& plan = *run->prepared.plan;
  if (input.scenario && setup->paced) plan.end = end_of(*input.scenario);
  plan.core.record = options.text("decisions").has_value();
  plan.core.adapt_expected = options.flag("adapt");
  if (Result<void> tuned = tune(options, plan); !tuned.ok()) return tuned.error();
  return run;
}

std::string hexadecimal(std::uint64_t number) {
  char text[19];
  std::snprintf(text, sizeof(text), "0x%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::string decimal(Real number) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.6f", number);
  return text;
}

// All digits that a number has.
std::string exact(Real number) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.16e", number);
  return text;
}

// Of ranks and steps; null where there is none.
JsonValue largest_budget_bytes(const RunPlan& plan, std::size_t steps) {
  std::optional<std::int64_t> largest;
  for (std::size_t step = 0; step < steps; ++step) {
    for (int replica = 0; replica < plan.grid.replicas; ++replica) {
      const Memory& memory = plan.world(static_cast<int>(step), replica).input().memory;
      for (const std::optional<std::int64_t>& budget : memory.budget_bytes) {
        if (budget) largest = std::max(largest.value_or(0), *budget);
      }
    }
  }
  return largest ? JsonValue(*largest) : JsonValue();
}

std::string as_json(const TrainingRun& run, const std::string& policy) {
  const Training& trained = run.sink->result();
  JsonArray losses;
  for (const Real loss : trained.loss) losses.push_back(JsonValue(Decimal{exact(loss)}));
  JsonValue json{JsonObject{}};
  json.add("policy", JsonValue(policy));
  json.add("loss", JsonValue(std::move(losses)));
  json.add("weights", JsonValue(hexadecimal(digest(trained.weights))));
  json.add("most_activation_bytes", JsonValue(run.sink->most_stash_bytes()));
  json.add("largest_budget_bytes", largest_budget_bytes(run.plan(), trained.loss.size()));
  return to_text(json, JsonLayout::kReadable) + "\n";
}

std::string as_text(const Training& trained) {
  std::string text;
  const std::size_t steps = trained.loss.size();
  // Some twenty lines of however many.
  const std::size_t every = std::max<std::size_t>(1, (steps + 19) / 20);
  for (std::size_t step = 0; step < steps; ++step) {
    if (step % every != 0 && step + 1 != steps) continue;
    text += "step " + std::to_string(step) + "  loss " + decimal(trained.loss[step]) + "\n";
  }
  if (!trained.weights.empty()) text += "weights " + hexadecimal(digest(trained.weights)) + "\n";
  return text;
}

// By so much may weights differ from those of the CPU, after some ten steps: a GPU rounds each
// number to 24 bits, or the factors of products to 11.
constexpr Real kNearInSinglePrecision = 1e-4;
constexpr Real kNearInTf32 = 1e-2;

// Bit for bit where weight gradients are summed in order, else by how much.
Result<bool> equals_serial(const TrainingRun& run, const TrainingChoice& choice,
                           Terminal& terminal) {
  const Training& trained = run.sink->result();
  const Result<Training> serial =
      train_serially(run.training->spec, run.training->data, run.program(), run.arrangements);
  if (!serial.ok()) return serial.error();
  Real largest = 0;
  for (const auto& [name, matrix] : serial->weights) {
    largest = std::max(largest, (matrix - trained.weights.at(name)).cwiseAbs().maxCoeff());
  }
  if (digest(serial->weights) == digest(trained.weights) && serial->loss == trained.loss) {
    terminal.err << "losses and weights equal those of a serial run, bit for bit\n";
    return true;
  }
  terminal.err << "weights differ from those of a serial run"
               << (choice.cuda ? " in double precision" : "") << ", by " << exact(largest)
               << " at most\n";
  if (choice.cuda) return largest < (choice.tf32 ? kNearInTf32 : kNearInSinglePrecision);
  return !run.program().ordered_accumulation() && largest < 1e-6;
}

Result<void> report(const Options& options, const TrainingRun& run, Capture& capture,
                    const std::string& policy, Terminal& terminal) {
  if (Result<void> finished = capture.finish(); !finished.ok()) return finished.error();
  const Training& trained = run.sink->result();
  if (!trained.loss.empty()) {
    terminal.out << (options.flag("json") ? as_json(run, policy) : as_text(trained));
  }
  return {};
}

// --check.
Result<ExitStatus> check_against_serial(const TrainingRun& run, const TrainingChoice& choice,
                                        Terminal& terminal) {
  if (run.sink->result().weights.empty()) return ExitStatus::kDone;
  const Result<bool> equal = equals_serial(run, choice, terminal);
  if (!equal.ok()) return equal.error();
  return *equal ? ExitStatus::kDone : ExitStatus::kFailed;
}

// What is there before the processes of a job meet.
struct ReadyTraining {
  JobInputs inputs;
  RunInput input;
  int policy = 0;
  std::string policy_name;
  TrainingChoice choice;
  TrainingRun training;
};

Result<ReadyTraining> get_ready(const Options& options) {
  Result<RunInput> input = read_run_input(options);
  if (!input.ok()) return input.error();
  const Result<int> policy = policy_of(options, *input);
  if (!policy.ok()) return policy.error();
  const Result<TrainingChoice> choice = training_choice(options);
  if (!choice.ok()) return choice.error();
  const std::optional<std::string> path = options.text("text");
  if (!path) return Error{"--text FILE is missing: what to learn"};
  const Result<std::size_t> limit = file_limit(options);
  if (!limit.ok()) return limit.error();
  Result<std::string> text = read_input_text(*path, *limit);
  if (!text.ok()) return text.error();
  if (text->empty()) return Error{*path + ": is empty; --text needs something to learn"};
  const Term learnt = {"--text of", describe_content(*text)};
  Result<TrainingRun> training = prepare(options, *input, *policy, *choice, std::move(*text));
  if (!training.ok()) return training.error();
  JobInputs inputs = {training->plan().grid, {input->content, learnt}};
  std::string name = input->policy_name(*policy);
  return ReadyTraining{std::move(inputs), std::move(*input), *policy,
                       std::move(name),   *choice,           std::move(*training)};
}

Result<ExitStatus> take_part(const Options& options, Job& job, ReadyTraining& ready,
                             Terminal& terminal) {
  TrainingRun& training = ready.training;
  if (Result<void> can = check_outputs(job, options, {"trace", "decisions"}); !can.ok()) {
    return can.error();
  }
  CaptureFiles files;
  files.trace = options.text_or("trace", "");
  files.decisions = options.text_or("decisions", "");
  files.name = ready.policy_name;
  files.versions = {{"rrfp", version_text()}, {"transport", job.name()}};
  auto capture = std::make_shared<Capture>(training.prepared.plan, files);
  training.sink->set_next(capture);
  Result<Equipment> equipment = equip_training(ready.choice, training, job);
  if (!equipment.ok()) return equipment.error();
  if (job.speaks()) tell_scenario(ready.input, ready.policy, options, terminal);
  const Result<RunOutcome> outcome =
      run_with_progress(job, training.prepared, *equipment, training.sink, "rrfp train", terminal);
  if (!outcome.ok()) return outcome.error();
  ExitStatus status = ExitStatus::kDone;
  if (outcome->end != RunEnd::kCompleted) status = report_failure(*outcome, "train", terminal);
  const bool speaks = job.speaks();
  if (speaks) {
    if (!equipment->about.empty()) {
      terminal.err << "device: " << equipment->about;
      if (outcome->end == RunEnd::kCompleted) {
        terminal.err << "; activations took at most " << training.sink->most_stash_bytes()
                     << " bytes of a partition";
      }
      terminal.err << "\n";
    }
    const Result<void> told = report(options, training, *capture, files.name, terminal);
    if (!told.ok()) terminal.err << "rrfp train: " << told.error().message << "\n";
    if (status == ExitStatus::kDone && !told.ok()) status = ExitStatus::kWrong;
  }
  terminal.out << std::flush;
  if (outcome->left_behind) std::_Exit(static_cast<int>(status));
  job.close(*outcome, static_cast<int>(status));
  // A serial run may take as long as all others together, who need not wait for it.
  if (status != ExitStatus::kDone || !speaks || !options.flag("check")) return status;
  // Communicators end together: those of the others wait for this process to let go of its own.
  *equipment = Equipment();
  return check_against_serial(training, ready.choice, terminal);
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  return run_as_job(
      "train", options, terminal, [&] { return get_ready(options); },
      [&](Job& job, ReadyTraining& ready) { return take_part(options, job, ready, terminal); });
}

}  // namespace

extern const Command kTrainCommand;
const Command kTrainCommand = {
    "train",
    "trains a small transformer on a text, in the pipeline of a case or a scenario",
    "FILE",
    "FILE is a case (rrfp.case/1) or a scenario (rrfp.scenario/1); stages, policy and memory in\n"
    "units of activations are taken from it. A root that is not the last one reads the bytes\n"
    "before a sequence (an encoder). With ordered accumulation the weights after the last step\n"
    "are those of a serial run, bit for bit, whatever the policy, the transport and the times.\n"
    "Under a window and a memory budget whether a run blocks may depend on the order in which\n"
    "messages come, so that it blocks here (status 3) and not in `rrfp simulate`.\n"
    "--device cuda computes in single precision: equal bits for every policy on equal partitions,\n"
    "near those of a CPU.",
    "rrfp train tests/cases/anticipating-zb.json --text README.md --steps 5 --check",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
