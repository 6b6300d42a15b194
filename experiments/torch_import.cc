#include "experiments/torch_import.h"

#include <array>
#include <utility>

#include "experiments/text_list.h"
#include "scheduler_core/schedule_check.h"
#include "traces/case_file.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr std::int64_t kUnitNs = 1'000'000;

/// What stands in the file and has no place in an order of tasks.
struct Dropped {
  std::int64_t messages = 0;
  std::int64_t parameters = 0;  ///< UNSHARD, RESHARD, REDUCE_GRAD
  std::int64_t overlapped = 0;  ///< actions of pairs
  std::int64_t idle = 0;
};

Dropped dropped_of(const TorchSchedule& torch) {
  Dropped dropped;
  for (const TorchRow& row : torch.rows) {
    int column = -1;
    for (const TorchAction& action : row.actions) {
      dropped.idle += action.column > column ? action.column - column - 1 : 0;
      column = action.column;
      if (is_message(action.op)) {
        ++dropped.messages;
      } else if (!is_compute(action.op)) {
        ++dropped.parameters;
      }
      if (action.overlapped) ++dropped.overlapped;
    }
    dropped.idle += row.columns - column - 1;
  }
  return dropped;
}

std::string describe(const TorchPlan& plan, const Program& program, const Dropped& dropped,
                     bool as_case) {
  std::array<std::int64_t, 4> kinds{};
  for (const std::vector<Task>& rank : plan.schedule.ranks) {
    for (const Task& task : rank) ++kinds[static_cast<std::size_t>(task.kind)];
  }
  std::string used;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == 0) continue;
    add_to_list(used, std::to_string(kinds[i]) + " " + letter(static_cast<Kind>(i)));
  }
  std::string text = counted(program.ranks(), "rank") + ", " + counted(program.stages(), "stage") +
                     ", " + counted(program.microbatches(), "microbatch") +
                     "; the order runs to its end\nused " + used + "\n";
  const auto line = [&text](std::int64_t count, const std::string& what) {
    if (count > 0) text += "dropped " + std::to_string(count) + " " + what + "\n";
  };
  if (as_case && dropped.messages > 0) {
    text += "kept " + std::to_string(dropped.messages) +
            " SEND and RECV cells: launch-queue mode posts communication there\n";
  } else {
    line(dropped.messages, "SEND and RECV cells: this file is to hold compute alone");
  }
  line(dropped.parameters, "UNSHARD, RESHARD and REDUCE_GRAD cells: parameters are not modelled");
  line(dropped.idle, "idle slots: a rank waits for what it needs, not for a slot");
  if (dropped.overlapped > 0) {
    text +=
        "kept " + std::to_string(dropped.overlapped) + " overlapped actions, one after the other\n";
  }
  return text;
}

Case unit_case(const std::string& name, Program program, const TorchPlan& plan) {
  Case unit{name, std::move(program)};
  const bool split = unit.program.split_backward();
  unit.duration_ns.assign(static_cast<std::size_t>(unit.program.task_ids()), 0);
  for (TaskId id = 0; id < unit.program.task_ids(); ++id) {
    const bool whole = !split && unit.program.slot_of(id) == Slot::kBackward;
    if (unit.program.exists(id)) {
      unit.duration_ns[static_cast<std::size_t>(id)] = whole ? 2 * kUnitNs : kUnitNs;
    }
  }
  unit.memory.activation_bytes.assign(
      static_cast<std::size_t>(unit.program.stages() * unit.program.microbatches()), 1);
  unit.policy.hint.name.clear();
  unit.policy.hint.order = plan.schedule.ranks;
  unit.policy.hint.messages = plan.messages;
  unit.policy.window = 1;
  return unit;
}

}  // namespace

Result<TorchImport> import_torch_csv(std::string_view text, const std::string& file,
                                     const TorchCsvOptions& options, bool as_case) {
  const Result<TorchSchedule> torch = parse_torch_csv(text, file, options);
  if (!torch.ok()) return torch.error();
  const TorchPlan plan = to_plan(*torch);
  Result<Program> program = Program::create(plan.program);
  if (!program.ok()) return Error{file + ": " + program.error().message};
  const Result<Program> fitted = fit_program(*program, plan.schedule);
  if (!fitted.ok()) return Error{file + ": " + fitted.error().message};
  const Result<void> runs = check_fixed_order(*fitted, plan.schedule);
  if (!runs.ok()) return Error{file + ": " + runs.error().message};

  TorchImport imported;
  imported.report = describe(plan, *program, dropped_of(*torch), as_case);
  if (as_case) {
    const Case unit = unit_case(file, *std::move(program), plan);
    imported.text = to_text(case_to_json(unit), JsonLayout::kReadable) + "\n";
    return imported;
  }
  Result<std::string> csv = to_torch_csv(to_torch(plan.schedule));
  if (!csv.ok()) return csv.error();
  imported.text = *std::move(csv);
  return imported;
}

}  // namespace rrfp
