#include "scheduler_core/schedule.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "scheduler_core/nearest.h"
#include "scheduler_core/schedule_families.h"

namespace rrfp {

namespace {

constexpr std::array kTable = {
    ScheduleEntry{"gpipe", "one chunk: all forwards, then all backwards", make_gpipe},
    ScheduleEntry{"1f1b", "one chunk: one forward, one backward", make_1f1b},
    ScheduleEntry{"eager-1f1b", "one chunk: 1f1b with twice the warm-up, hides latency",
                  make_eager_1f1b},
    ScheduleEntry{"zb-h1", "one chunk, split: zero bubble at the memory of 1f1b", make_zb_h1},
    ScheduleEntry{"zb-h2", "one chunk, split: zero bubble at twice that memory", make_zb_h2},
    ScheduleEntry{"interleaved-1f1b", "looped chunks: Megatron's interleaved 1f1b",
                  make_interleaved_1f1b},
    ScheduleEntry{"interleaved-1f1b-torch", "looped chunks: torch's interleaved 1f1b",
                  make_interleaved_1f1b_torch},
    ScheduleEntry{"interleaved-zb", "looped chunks, split: torch's interleaved zero bubble",
                  make_interleaved_zb},
    ScheduleEntry{"looped-bfs", "looped chunks: all forwards of a chunk, then the next chunk",
                  make_looped_bfs},
    ScheduleEntry{"zb-v", "V-shaped chunks, split: zero bubble at the memory of 1f1b", make_zb_v},
    ScheduleEntry{"bf", "any placement: backward before forward (then weight)", make_bf},
    ScheduleEntry{"bfw", "any placement: backward, forward, weight", make_bfw},
    ScheduleEntry{"fbw", "any placement: forward, backward, weight", make_fbw},
    ScheduleEntry{"critical-path", "any placement: longest remaining path in expected time first",
                  make_critical_path, true},
    ScheduleEntry{"random", "any placement: a shuffle, by seed", make_random},
};

Error unknown_name(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ScheduleEntry& entry : kTable) known.push_back(entry.name);
  std::string list;
  for (const std::string_view word : by_nearness(name, known)) {
    list += list.empty() ? "" : ", ";
    list += word;
  }
  return Error{"unknown schedule " + in_quotes(name) + "; did you mean " +
               in_quotes(nearest(name, known)) + "? Known: " + list};
}

// A parameter that would change nothing is a mistake about which schedule it belongs to.
Error takes_none(const ScheduleEntry& entry, std::string_view parameter, std::string_view owner) {
  return Error{"schedule " + std::string(entry.name) + " takes no " + std::string(parameter) +
               "; only " + std::string(owner) + " does"};
}

// What an order says about the backward of one stage and microbatch.
enum Seen : std::uint8_t { kSeenForward = 1, kSeenB = 2, kSeenI = 4, kSeenW = 8 };

Seen seen_bit(Kind kind) {
  constexpr std::array<Seen, 4> kBits = {kSeenForward, kSeenB, kSeenI, kSeenW};
  return kBits[static_cast<std::size_t>(kind)];
}

// Walks a schedule over a program and names the first thing that is wrong.
class Fitting {
 public:
  Fitting(const Program& program, const Schedule& schedule)
      : program_(program),
        schedule_(schedule),
        seen_(static_cast<std::size_t>(program.stages()) *
              static_cast<std::size_t>(program.microbatches())) {}

  Result<void> run() {
    if (schedule_.ranks.size() != static_cast<std::size_t>(program_.ranks())) {
      return Error{"the order has " + std::to_string(schedule_.ranks.size()) +
                   " ranks; the program has " + std::to_string(program_.ranks())};
    }
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      for (const Task& task : schedule_.ranks[static_cast<std::size_t>(rank)]) {
        if (Result<void> taken = take(rank, task); !taken) return taken;
      }
    }
    return nothing_missing();
  }

  bool fuses(int stage, int microbatch) const {
    return (seen_[cell(stage, microbatch)] & kSeenB) != 0;
  }

 private:
  std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(program_.microbatches()) +
           static_cast<std::size_t>(microbatch);
  }

  Error wrong(int rank, const Task& task, const std::string& what) const {
    return Error{"order of rank " + std::to_string(rank) + ": " + to_string(task) + " " + what};
  }

  // Empty where the program has such a task.
  std::string not_a_task(const Task& task) const {
    if (task.stage < 0 || task.stage >= program_.stages()) {
      return "names no stage of the program, which has 0 to " +
             std::to_string(program_.stages() - 1);
    }
    if (task.microbatch < 0 || task.microbatch >= program_.microbatches()) {
      return "names no microbatch of the program, which has 0 to " +
             std::to_string(program_.microbatches() - 1);
    }
    if (task.kind == Kind::kForward) return {};
    if (program_.backward_of(task.stage) == Backward::kNone) {
      return "is not a task: stage " + std::to_string(task.stage) + " has no backward";
    }
    if (task.kind == Kind::kBackward) return {};
    if (!program_.split_backward()) {
      return "is not a task: backwards are not split, each is one B";
    }
    if (task.kind == Kind::kWeightGradient &&
        program_.backward_of(task.stage) == Backward::kInput) {
      return "is not a task: stage " + std::to_string(task.stage) +
             " has only an input gradient (backward \"input\")";
    }
    return {};
  }

  Result<void> take(int rank, const Task& task) {
    if (const std::string reason = not_a_task(task); !reason.empty()) {
      return wrong(rank, task, reason);
    }
    if (const int home = program_.rank_of(task.stage); home != rank) {
      return wrong(rank, task,
                   "is on the wrong rank: stage " + std::to_string(task.stage) +
                       " is placed on rank " + std::to_string(home));
    }
    std::uint8_t& seen = seen_[cell(task.stage, task.microbatch)];
    const Seen bit = seen_bit(task.kind);
    if ((seen & bit) != 0) return wrong(rank, task, twice(rank, task));
    seen |= bit;
    if ((seen & kSeenB) != 0 && (seen & (kSeenI | kSeenW)) != 0) {
      const Kind half = (seen & kSeenI) != 0 ? Kind::kInputGradient : Kind::kWeightGradient;
      return Error{"order of rank " + std::to_string(rank) + ": stage " +
                   std::to_string(task.stage) + ", microbatch " + std::to_string(task.microbatch) +
                   " has both " + to_string({task.stage, Kind::kBackward, task.microbatch}) +
                   " and " + to_string({task.stage, half, task.microbatch}) +
                   "; a backward is either one B, or I and W"};
    }
    return {};
  }

  // "is there twice, at positions 0 and 5".
  std::string twice(int rank, const Task& task) const {
    const std::vector<Task>& order = schedule_.ranks[static_cast<std::size_t>(rank)];
    const auto first = std::find(order.begin(), order.end(), task);
    const auto second = std::find(first + 1, order.end(), task);
    return "is there twice, at positions " + std::to_string(first - order.begin()) + " and " +
           std::to_string(second - order.begin());
  }

  Result<void> nothing_missing() const {
    for (int stage = 0; stage < program_.stages(); ++stage) {
      const Backward backward = program_.backward_of(stage);
      for (int microbatch = 0; microbatch < program_.microbatches(); ++microbatch) {
        const std::uint8_t seen = seen_[cell(stage, microbatch)];
        const auto missing = [&](Kind kind, const char* rest) {
          return wrong(program_.rank_of(stage), {stage, kind, microbatch},
                       std::string("is missing") + rest);
        };
        if ((seen & kSeenForward) == 0) return missing(Kind::kForward, "");
        if (backward == Backward::kNone || (seen & kSeenB) != 0) continue;
        if (!program_.split_backward()) return missing(Kind::kBackward, "");
        if ((seen & kSeenI) == 0) return missing(Kind::kInputGradient, ", and there is no B");
        if (backward == Backward::kFull && (seen & kSeenW) == 0) {
          return missing(Kind::kWeightGradient, "");
        }
      }
    }
    return {};
  }

  const Program& program_;
  const Schedule& schedule_;
  std::vector<std::uint8_t> seen_;
};

}  // namespace

std::span<const ScheduleEntry> schedule_table() { return kTable; }

Result<Schedule> make_schedule(const HintSpec& hint, const Program& program,
                               const ScheduleContext& context) {
  if (!hint.order.empty()) return Schedule{hint.order};
  for (const ScheduleEntry& entry : kTable) {
    if (entry.name != hint.name) continue;
    if (hint.group != 0 && entry.make != make_interleaved_1f1b) {
      return takes_none(entry, "group", "interleaved-1f1b");
    }
    if (hint.seed != 0 && entry.make != make_random) return takes_none(entry, "seed", "random");
    ScheduleContext own = entry.looks_at_times ? context : ScheduleContext{};
    own.hint = &hint;
    return entry.make(program, own);
  }
  return unknown_name(hint.name);
}

bool looks_at_times(const HintSpec& hint) {
  return hint.order.empty() &&
         std::any_of(kTable.begin(), kTable.end(), [&](const ScheduleEntry& entry) {
           return entry.name == hint.name && entry.looks_at_times;
         });
}

Result<Program> fit_program(const Program& program, const Schedule& schedule) {
  Fitting fitting(program, schedule);
  if (Result<void> fits = fitting.run(); !fits) return fits.error();
  if (!program.split_backward()) return program;
  std::vector<bool> fused;
  fused.reserve(static_cast<std::size_t>(program.stages()) *
                static_cast<std::size_t>(program.microbatches()));
  bool changed = false;
  for (int stage = 0; stage < program.stages(); ++stage) {
    for (int microbatch = 0; microbatch < program.microbatches(); ++microbatch) {
      fused.push_back(fitting.fuses(stage, microbatch));
      changed = changed || fused.back() != program.fused(stage, microbatch);
    }
  }
  return changed ? program.with_fused(std::move(fused)) : program;
}

Result<FittedSchedule> make_fitted_schedule(const HintSpec& hint, const Program& program,
                                            const ScheduleContext& context) {
  Result<Schedule> schedule = make_schedule(hint, program, context);
  if (!schedule.ok()) return schedule.error();
  Result<Program> fitted = fit_program(program, *schedule);
  if (!fitted.ok()) return fitted.error();
  return FittedSchedule{*std::move(schedule), *std::move(fitted)};
}

}  // namespace rrfp
