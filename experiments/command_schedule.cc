// rrfp schedule: prints, checks or converts a schedule.
#include <algorithm>
#include <array>
#include <ostream>

#include "experiments/command.h"
#include "experiments/display_units.h"
#include "experiments/input_file.h"
#include "experiments/output_file.h"
#include "experiments/shape.h"
#include "experiments/text_list.h"
#include "experiments/text_table.h"
#include "scheduler_core/nearest.h"
#include "scheduler_core/schedule_check.h"
#include "sim/simulate.h"
#include "traces/atomic_file.h"
#include "traces/json_writer.h"
#include "traces/policy_file.h"
#include "traces/torch_csv.h"

namespace rrfp {

namespace {

constexpr std::array<std::string_view, 2> kBackwardWords = {"full", "split"};
constexpr std::array<std::string_view, 2> kBMeansWords = {"full", "input"};

constexpr std::array kOptions = {
    OptionRow{"pp", "P", "pipeline ranks"},
    OptionRow{"microbatches", "M", "microbatches of an iteration"},
    OptionRow{"shape", "WORD", "linear, looped or v (default: what the schedule is made for)"},
    OptionRow{"chunks", "V", "stages per rank (default: 1 linear, 2 otherwise)"},
    OptionRow{"backward", "WORD", "full or split (default: what the schedule is made for)"},
    OptionRow{"group", "N", "interleaved schedules: microbatches per group (default: P)"},
    OptionRow{"seed", "N", "of the schedule \"random\""},
    OptionRow{"from", "FILE", "read the schedule from a torch CSV file instead (- is stdin)",
              OptionRow::Alike::kValue, OptionRow::File::kRead},
    OptionRow{"b-means", "WORD", "B of a CSV file, read and written: full or input (default full)"},
    OptionRow{"csv", "", "print torch CSV"},
    OptionRow{"hint", "", "print the hint of a case file: {\"order\": ...}"},
    OptionRow{"out", "FILE", "write the torch CSV or the hint to FILE instead of printing it",
              OptionRow::Alike::kValue, OptionRow::File::kReplaced},
    OptionRow{"check", "", "only say whether the schedule runs as a fixed order"},
    OptionRow{"budget", "N,...", "with --check: activations a rank may hold, one for all or each"},
    OptionRow{"list", "", "list the schedules known by name"},
    kFileLimitRow,
};

// A schedule and the program that it orders, with fused backwards.
struct Plan {
  std::string title;
  Program program;
  Schedule schedule;
};

std::string list_schedules() {
  TextTable table({"name", "what it is"});
  table.align_left(1);
  for (const ScheduleEntry& entry : schedule_table()) {
    table.add({std::string(entry.name), std::string(entry.summary)});
  }
  return table.text();
}

Result<Plan> fitted(std::string title, ProgramSpec spec, Schedule schedule) {
  const Result<Program> program = Program::create(std::move(spec));
  if (!program.ok()) return program.error();
  Result<Program> with_fused = fit_program(*program, schedule);
  if (!with_fused.ok()) return Error{title + ": " + with_fused.error().message};
  return Plan{std::move(title), std::move(with_fused).value(), std::move(schedule)};
}

Result<BMeans> b_means_of(const Options& options) {
  const Result<std::string> word = options.word_or("b-means", "full", kBMeansWords);
  if (!word.ok()) return word.error();
  return *word == "full" ? BMeans::kFull : BMeans::kInput;
}

Result<Plan> plan_from_file(const std::string& path, const Options& options) {
  for (const std::string_view other :
       {"pp", "microbatches", "shape", "chunks", "backward", "group", "seed"}) {
    if (!options.text(other)) continue;
    return Error{"--" + std::string(other) +
                 " describes a schedule by name; with --from the file "
                 "says it"};
  }
  const Result<std::size_t> limit = file_limit(options);
  if (!limit.ok()) return limit.error();
  const Result<std::string> text = read_input_text(path, *limit);
  if (!text.ok()) return text.error();
  TorchCsvOptions csv;
  csv.limit_bytes = *limit;
  const Result<BMeans> b_means = b_means_of(options);
  if (!b_means.ok()) return b_means.error();
  csv.b_means = *b_means;
  const std::string file = path == "-" ? "standard input" : path;
  const Result<TorchSchedule> torch = parse_torch_csv(*text, file, csv);
  if (!torch.ok()) {
    constexpr FileKind kTaken[] = {FileKind::kScheduleCsv};
    return path == "-" ? explain_kind(torch.error(), file, kind_of_text(*text), kTaken)
                       : explain_kind(torch.error(), file, kTaken);
  }
  TorchPlan plan = to_plan(*torch);
  return fitted(file, std::move(plan.program), std::move(plan.schedule));
}

Result<int> required(const Options& options, std::string_view name, std::int64_t most) {
  const Result<std::optional<std::int64_t>> value = options.integer(name, 1, most);
  if (!value.ok()) return value.error();
  if (!*value) {
    return Error{"--" + std::string(name) + " is missing; expected a whole number from 1 to " +
                 std::to_string(most)};
  }
  return static_cast<int>(**value);
}

Result<PipelineShape> shape_of(const std::string& name, const Options& options) {
  const Result<int> ranks = required(options, "pp", 4096);
  if (!ranks.ok()) return ranks.error();
  const Result<int> microbatches = required(options, "microbatches", 65536);
  if (!microbatches.ok()) return microbatches.error();
  const Result<std::string> word = options.word_or("shape", usual_shape(name), kShapeWords);
  if (!word.ok()) return word.error();
  const Result<std::int64_t> chunks =
      options.integer_or("chunks", *word == "linear" ? 1 : 2, 1, 64);
  if (!chunks.ok()) return chunks.error();
  const Result<std::string> backward =
      options.word_or("backward", usually_split(name) ? "split" : "full", kBackwardWords);
  if (!backward.ok()) return backward.error();
  constexpr std::int64_t kMostForwards = std::int64_t{1} << 22;
  const std::int64_t forwards = *chunks * *ranks * *microbatches;
  if (forwards > kMostForwards) {
    return Error{"--pp x --chunks x --microbatches is " + std::to_string(forwards) + "; at most " +
                 std::to_string(kMostForwards) + " is allowed"};
  }
  return PipelineShape{*ranks, *microbatches, *word, static_cast<int>(*chunks),
                       *backward == "split"};
}

Result<Plan> plan_by_name(const std::string& name, const Options& options) {
  // The name first: a mistake in it is the likelier one.
  const std::span<const ScheduleEntry> table = schedule_table();
  std::vector<std::string_view> known;
  for (const ScheduleEntry& entry : table) known.push_back(entry.name);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    return not_one_of("schedule", name, known);
  }
  const Result<PipelineShape> shape = shape_of(name, options);
  if (!shape.ok()) return shape.error();
  const Result<std::int64_t> group = options.integer_or("group", 0, 1, 65536);
  if (!group.ok()) return group.error();
  const Result<std::int64_t> seed = options.integer_or("seed", 0);
  if (!seed.ok()) return seed.error();
  const HintSpec hint{name, {}, static_cast<int>(*group), static_cast<std::uint64_t>(*seed)};

  Result<ProgramSpec> spec = to_program_spec(*shape);
  if (!spec.ok()) return spec.error();
  const Result<Program> program = Program::create(*spec);
  if (!program.ok()) return program.error();
  // DisplayUnit costs, for the schedules that look at durations.
  const std::vector<std::int64_t> expected(static_cast<std::size_t>(program->task_ids()), 1);
  ScheduleContext context;
  context.hint = &hint;
  context.expected_ns = expected;
  Result<Schedule> schedule = make_schedule(hint, *program, context);
  if (!schedule.ok()) return schedule.error();
  return fitted(name, std::move(spec).value(), std::move(schedule).value());
}

// The plan as a case in which F, I and W take 1 and B takes 2, and each
// activation is one byte.
Case unit_case(const Plan& plan) {
  const Program& program = plan.program;
  Result<Program> whole = Program::create(program.spec());
  RRFP_CHECK(whole.ok());
  Case unit{plan.title, std::move(whole).value()};
  unit.duration_ns.assign(static_cast<std::size_t>(program.task_ids()), 1);
  if (!program.split_backward()) {
    for (int stage = 0; stage < program.stages(); ++stage) {
      for (int m = 0; m < program.microbatches(); ++m) {
        unit.duration_ns[static_cast<std::size_t>(program.task_id(stage, Slot::kBackward, m))] = 2;
      }
    }
  }
  unit.memory.activation_bytes.assign(
      static_cast<std::size_t>(program.stages() * program.microbatches()), 1);
  unit.policy.hint.name.clear();
  unit.policy.hint.order = plan.schedule.ranks;
  unit.policy.window = 1;
  return unit;
}

std::string print_plan(const Plan& plan) {
  const Program& program = plan.program;
  std::string text = plan.title + ": " + counted(program.ranks(), "rank") + ", " +
                     counted(program.stages(), "stage") + ", " +
                     counted(program.microbatches(), "microbatch") + "\n\n";
  for (std::size_t rank = 0; rank < plan.schedule.ranks.size(); ++rank) {
    text += "rank " + std::to_string(rank) + ":";
    for (const Task& task : plan.schedule.ranks[rank]) text += " " + to_string(task);
    text += "\n";
  }
  if (const Result<void> runs = check_fixed_order(program, plan.schedule); !runs.ok()) {
    return text + "\nAs a fixed order it blocks: " + runs.error().message + "\n";
  }
  const Result<SimulationResult> result = simulate(unit_case(plan));
  if (!result.ok()) return text + "\n" + result.error().message + "\n";
  text += "\nAs a fixed order at unit costs (F = I = W = 1, B = 2, messages take no time):\n";
  TextTable table({"rank", "tasks", "busy", "idle", "peak activations"});
  for (std::size_t rank = 0; rank < result->ranks.size(); ++rank) {
    const RankResult& one = result->ranks[rank];
    table.add({std::to_string(rank), std::to_string(one.order.size()), std::to_string(one.busy_ns),
               std::to_string(result->makespan_ns - one.busy_ns), std::to_string(one.peak_bytes)});
  }
  return text + table.text() + "makespan " + std::to_string(result->makespan_ns) + "\n";
}

Result<std::vector<std::optional<std::int64_t>>> budgets_of(const Options& options, int ranks) {
  std::vector<std::optional<std::int64_t>> budgets;
  const Result<std::vector<std::string>> words = options.list("budget");
  if (!words.ok()) return words.error();
  if (words->empty()) return budgets;
  const std::string expected =
      "; expected a whole number from 1 to 1000000000, one for all ranks "
      "or " +
      std::to_string(ranks) + " with commas between them";
  for (const std::string& word : *words) {
    const bool digits = word.size() <= 10 && word.find_first_not_of("0123456789") == word.npos;
    const std::int64_t value = digits ? std::stoll(word) : 0;
    if (value < 1 || value > 1'000'000'000) {
      return Error{"--budget: found " + in_quotes(word) + expected};
    }
    budgets.emplace_back(value);
  }
  if (budgets.size() == 1) budgets.resize(static_cast<std::size_t>(ranks), budgets.front());
  if (budgets.size() != static_cast<std::size_t>(ranks)) {
    return Error{"--budget: found " + std::to_string(words->size()) + " numbers" + expected};
  }
  return budgets;
}

Result<ExitStatus> check_plan(const Plan& plan, const Options& options, Terminal& terminal) {
  const auto wrong = [&plan](const Error& error) {
    return Error{plan.title + ": " + error.message};
  };
  const auto budgets = budgets_of(options, plan.program.ranks());
  if (!budgets.ok()) return budgets.error();
  const Result<void> runs = check_fixed_order(plan.program, plan.schedule);
  if (!runs.ok()) return wrong(runs.error());
  const Case unit = unit_case(plan);
  const Result<void> fits = check_budgets(plan.program, unit.memory.activation_bytes, *budgets);
  if (!fits.ok()) return wrong(fits.error());
  const Result<void> holds =
      check_fixed_memory(plan.program, plan.schedule, {unit.memory.activation_bytes, {}}, *budgets);
  if (!holds.ok()) return wrong(Error{holds.error().message + ", in activations"});
  terminal.out << plan.title << ": every task stands once, on its rank, and the order runs to its "
               << "end" << (budgets->empty() ? "" : " within the budget") << "\n";
  return ExitStatus::kDone;
}

Result<std::string> converted(const Plan& plan, const Options& options) {
  if (options.flag("hint")) {
    HintSpec hint;
    hint.name.clear();
    hint.order = plan.schedule.ranks;
    return to_text(hint_to_json(hint), JsonLayout::kReadable) + "\n";
  }
  const Result<BMeans> b_means = b_means_of(options);
  if (!b_means.ok()) return b_means.error();
  return to_torch_csv(to_torch(plan.schedule), *b_means);
}

Result<Plan> plan_of(const Options& options) {
  const std::optional<std::string> file = options.text("from");
  if (file && !options.operands().empty()) {
    return Error{"give either a schedule's name or --from; found both"};
  }
  if (file) return plan_from_file(*file, options);
  if (options.operands().empty()) {
    return Error{"a schedule's name is missing; `rrfp schedule --list` lists them"};
  }
  return plan_by_name(options.operands().front(), options);
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  if (options.flag("list")) {
    terminal.out << list_schedules();
    return ExitStatus::kDone;
  }
  if (options.text("budget") && !options.flag("check")) {
    return Error{"--budget is only looked at with --check"};
  }
  const bool converts = options.flag("csv") || options.flag("hint");
  if (options.flag("csv") + options.flag("hint") + options.flag("check") > 1) {
    return Error{"--csv, --hint and --check exclude each other"};
  }
  const std::optional<std::string> out = options.text("out");
  if (out && !converts) return Error{"--out needs --csv or --hint, which say what is written"};
  if (out) {
    if (Result<void> can = check_output_file(*out, "--out"); !can.ok()) return can.error();
  }
  const Result<Plan> plan = plan_of(options);
  if (!plan.ok()) return plan.error();
  if (options.flag("check")) return check_plan(*plan, options, terminal);
  if (!converts) {
    terminal.out << print_plan(*plan);
    return ExitStatus::kDone;
  }
  const Result<std::string> text = converted(*plan, options);
  if (!text.ok()) return text.error();
  if (!out) {
    terminal.out << *text;
    return ExitStatus::kDone;
  }
  const Result<void> written = write_file_atomically(*out, *text);
  if (!written.ok()) return written.error();
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kScheduleCommand;
const Command kScheduleCommand = {
    "schedule",
    "prints, checks or converts a schedule",
    "[NAME]",
    "NAME is one of `rrfp schedule --list`; it needs --pp and --microbatches.",
    "rrfp schedule zb-h1 --pp 4 --microbatches 8 --csv --out zb-h1.csv",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
