#include "experiments/what_if.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "experiments/recorded_order.h"
#include "experiments/shape.h"
#include "scheduler_core/schedule.h"
#include "sim/balance_bound.h"
#include "sim/replay_case.h"
#include "sim/simulate.h"

namespace rrfp {

namespace {

constexpr std::int64_t kBlocked = -1;

bool needs_split(const WhatIfVariant& variant) {
  return variant.hint != kRecordedHint && usually_split(variant.hint);
}

/// The same case with a backward in two parts.
Result<Case> split(const Case& whole, double weight_share) {
  ProgramSpec spec = whole.program.spec();
  spec.split_backward = true;
  Result<Program> program = Program::create(std::move(spec));
  if (!program.ok()) return program.error();
  Case made = whole;
  made.program = *std::move(program);
  for (int stage = 0; stage < made.program.stages(); ++stage) {
    for (int m = 0; m < made.program.microbatches(); ++m) {
      const TaskId weight = made.program.task_id(stage, Slot::kWeight, m);
      if (!made.program.exists(weight)) continue;
      std::int64_t& input_ns = made.duration_ns[made.program.task_id(stage, Slot::kBackward, m)];
      const auto weight_ns = std::llround(static_cast<double>(input_ns) * weight_share);
      made.duration_ns[weight] = weight_ns;
      input_ns -= weight_ns;
    }
  }
  return made;
}

class WhatIfRun {
 public:
  explicit WhatIfRun(const WhatIfOptions& options) : options_(options) {
    for (const WhatIfVariant& variant : options.variants) {
      WhatIfRow row;
      row.variant = variant;
      row.split_assumed = needs_split(variant) && options.split_fraction.has_value();
      result_.rows.push_back(std::move(row));
    }
  }

  Result<WhatIf> run(TraceSource& source) {
    if (Result<void> rewound = source.rewind(); !rewound.ok()) return rewound.error();
    result_.ranks.resize(static_cast<std::size_t>(source.header().program.ranks()));
    TraceStep step;
    while (true) {
      const Result<bool> more = source.next(&step);
      if (!more.ok()) return more.error();
      if (!*more) break;
      const Result<void> added = add_step(source.header(), step);
      if (!added.ok()) return added.error();
    }
    if (result_.iterations.empty()) {
      std::string why = "holds no iteration of which every replica has all its tasks";
      if (result_.dropped.total() > 0) why += ": " + result_.dropped.reasons[0].first;
      return Error{why};
    }
    return std::move(result_);
  }

 private:
  Result<void> add_step(const TraceHeader& header, const TraceStep& step) {
    std::vector<Case> cases;
    for (int replica = 0; replica < header.replicas; ++replica) {
      Result<Case> made = replay_case(header, step, replica);
      if (!made.ok()) {
        result_.dropped.add("an iteration that lacks a task or holds it twice",
                            made.error().message);
        return {};
      }
      count_memory(&*made);
      cases.push_back(*std::move(made));
    }
    const Result<ReplayFrame> frame = ReplayFrame::create(header, step);
    if (!frame.ok()) return frame.error();
    learn_name(cases);
    result_.iterations.push_back(step.iteration);
    for (std::size_t i = 0; i < result_.rows.size(); ++i) {
      if (!result_.rows[i].error.empty()) continue;
      const Result<void> ran = run_row(cases, *frame, i == 0, &result_.rows[i]);
      if (ran.ok()) continue;
      if (i == 0) return ran.error();
      result_.rows[i].error = ran.error().message;
    }
    BalanceBound bound;
    for (const Case& made : cases) {
      // The bound holds for every row: where some split their backwards, so does it.
      if (!splits() || made.program.split_backward()) {
        bound.add(made);
        continue;
      }
      const Result<Case> parted = split(made, *options_.split_fraction);
      if (!parted.ok()) return parted.error();
      bound.add(*parted);
    }
    const auto of_all_ns = [&](const std::vector<std::int64_t>& of_one_ns) {
      std::vector<std::int64_t> ends_ns;
      for (std::size_t i = 0; i < cases.size(); ++i) {
        ends_ns.insert(ends_ns.end(), of_one_ns.begin(), of_one_ns.end());
      }
      return frame->step_ns(ends_ns);
    };
    result_.bound_ns.push_back(of_all_ns(bound.end_ns()));
    result_.work_bound_ns.push_back(of_all_ns(bound.work_ns()));
    return {};
  }

  bool splits() const {
    return std::any_of(result_.rows.begin(), result_.rows.end(),
                       [](const WhatIfRow& row) { return row.split_assumed; });
  }

  /// Memory in activations and messages, one a piece.
  static void count_memory(Case* made) {
    const Program& program = made->program;
    made->memory.activation_bytes.assign(
        static_cast<std::size_t>(program.stages()) * program.microbatches(), 1);
    made->network.message_bytes.assign(static_cast<std::size_t>(program.task_ids()), 0);
    for (int stage = 0; stage < program.stages(); ++stage) {
      for (int m = 0; m < program.microbatches(); ++m) {
        made->network.message_bytes[program.task_id(stage, Slot::kForward, m)] = 1;
      }
    }
  }

  void learn_name(const std::vector<Case>& cases) {
    for (const Case& made : cases) {
      const bool same = named_ && made.policy.hint.order == last_order_;
      if (same) continue;
      last_order_ = made.policy.hint.order;
      const std::string name = schedule_name(made.program, last_order_);
      if (named_ && name != result_.recorded_as) {
        result_.recorded_as.clear();
        several_orders_ = true;
      }
      if (!several_orders_) result_.recorded_as = name;
      named_ = true;
    }
  }

  Result<Case> varied(const Case& recorded, const WhatIfVariant& variant) const {
    Case made = recorded;
    if (needs_split(variant) && !recorded.program.split_backward()) {
      if (!options_.split_fraction) {
        return Error{
            "needs a split backward, which the trace does not have; --split-fraction "
            "assumes one"};
      }
      Result<Case> parted = split(recorded, *options_.split_fraction);
      if (!parted.ok()) return parted.error();
      made = *std::move(parted);
    }
    if (variant.hint != kRecordedHint) {
      made.policy.hint = HintSpec{};
      made.policy.hint.name = variant.hint;
    }
    made.policy.window = variant.window;
    made.policy.anticipation = variant.anticipation;
    made.policy.arrangement = variant.arrangement;
    made.network.mode = variant.network;
    if (variant.network == NetworkMode::kLaunchQueue) made.network.message_ns = options_.message_ns;
    Result<std::vector<std::int64_t>> budget = budget_of(recorded, made);
    if (!budget.ok()) return budget.error();
    made.memory.budget_bytes.assign(budget->begin(), budget->end());
    return made;
  }

  /// By rank; empty: no limit.
  Result<std::vector<std::int64_t>> budget_of(const Case& recorded, const Case& made) const {
    const auto ranks = static_cast<std::size_t>(recorded.program.ranks());
    const WhatIfBudget& budget = options_.budget;
    switch (budget.kind) {
      case WhatIfBudget::Kind::kNone:
        return std::vector<std::int64_t>{};
      case WhatIfBudget::Kind::kRecorded:
        return peak_activations_of(recorded.policy.hint.order);
      case WhatIfBudget::Kind::kEven: {
        const std::vector<std::int64_t> peaks = peak_activations_of(recorded.policy.hint.order);
        return std::vector(ranks, *std::max_element(peaks.begin(), peaks.end()));
      }
      case WhatIfBudget::Kind::kSchedule:
        break;
      case WhatIfBudget::Kind::kNumbers:
        if (budget.numbers.size() == 1) return std::vector(ranks, budget.numbers[0]);
        if (budget.numbers.size() == ranks) return budget.numbers;
        return Error{"--budget: found " + std::to_string(budget.numbers.size()) +
                     " numbers; expected one for all ranks or " + std::to_string(ranks)};
    }
    HintSpec hint;
    hint.name = budget.schedule;
    ScheduleContext context;
    context.hint = &hint;
    context.expected_ns = made.duration_ns;
    const Result<Schedule> schedule = make_schedule(hint, made.program, context);
    if (!schedule.ok()) return Error{"--budget: " + schedule.error().message};
    return peak_activations_of(schedule->ranks);
  }

  Result<void> run_row(const std::vector<Case>& cases, const ReplayFrame& frame, bool causes,
                       WhatIfRow* row) {
    std::vector<std::int64_t> ends_ns;
    std::vector<SimulationResult> results;
    bool blocked = false;
    for (const Case& recorded : cases) {
      const Result<Case> made = varied(recorded, row->variant);
      if (!made.ok()) return made.error();
      SimulateOptions detail;
      detail.idle_causes = causes;
      Result<SimulationResult> result = simulate(*made, detail);
      if (!result.ok()) return result.error();
      blocked = blocked || !result->completed;
      std::int64_t all_ranks = 0;
      for (const RankResult& rank : result->ranks) {
        row->peak_activations = std::max(row->peak_activations, rank.peak_bytes);
        row->peak_inbox = std::max(row->peak_inbox, rank.peak_inbox_bytes);
        all_ranks += rank.peak_bytes;
        std::int64_t end_ns = 0;
        for (const std::int64_t one_ns : rank.end_ns) end_ns = std::max(end_ns, one_ns);
        ends_ns.push_back(end_ns);
      }
      row->all_ranks = std::max(row->all_ranks, all_ranks);
      results.push_back(*std::move(result));
    }
    if (blocked) {
      ++row->blocked;
      row->step_ns.push_back(kBlocked);
      return {};
    }
    const std::int64_t step_ns = frame.step_ns(ends_ns);
    row->step_ns.push_back(step_ns);
    if (causes) add_causes(results, step_ns);
    return {};
  }

  void add_causes(const std::vector<SimulationResult>& results, std::int64_t step_ns) {
    for (const SimulationResult& result : results) {
      for (std::size_t i = 0; i < result.ranks.size(); ++i) {
        WhatIfRank& rank = result_.ranks[i];
        rank.busy_ns += result.ranks[i].busy_ns;
        for (std::size_t cause = 0; cause < rank.idle_ns.size(); ++cause) {
          rank.idle_ns[cause] += result.ranks[i].idle_ns[cause];
        }
        rank.around_ns += step_ns - result.makespan_ns;
      }
    }
  }

  const WhatIfOptions& options_;
  WhatIf result_;
  std::vector<std::vector<Task>> last_order_;
  bool named_ = false;
  bool several_orders_ = false;
};

}  // namespace

std::string describe(const WhatIfVariant& variant) {
  std::string text = variant.hint;
  text += variant.window == 1           ? ", fixed"
          : variant.window == kNoWindow ? ", ready"
                                        : ", window " + std::to_string(variant.window);
  if (variant.anticipation) text += "+wait";
  if (variant.arrangement == Arrangement::kAscending) text += ", ascending";
  if (variant.arrangement == Arrangement::kHill) text += ", hill";
  return text;
}

double WhatIfRow::mean_ns() const {
  double sum = 0;
  for (const std::int64_t ns : step_ns) sum += static_cast<double>(ns);
  return step_ns.empty() ? 0 : sum / static_cast<double>(step_ns.size());
}

Result<WhatIf> what_if(TraceSource& source, const WhatIfOptions& options) {
  return WhatIfRun(options).run(source);
}

std::vector<WhatIfVariant> usual_variants(bool split) {
  const std::string recorded(kRecordedHint);
  const Anticipation wait{750, 500};
  std::vector<WhatIfVariant> variants;
  const auto add = [&variants](const std::string& hint, int window,
                               std::optional<Anticipation> anticipation, Arrangement arrangement,
                               NetworkMode network) {
    variants.push_back({hint, window, anticipation, arrangement, network});
  };
  for (const Arrangement arrangement : {Arrangement::kGiven, Arrangement::kHill}) {
    add(recorded, 1, {}, arrangement, NetworkMode::kEager);
    add(recorded, kNoWindow, {}, arrangement, NetworkMode::kEager);
    add(recorded, kNoWindow, wait, arrangement, NetworkMode::kEager);
    add("bf", kNoWindow, wait, arrangement, NetworkMode::kEager);
  }
  if (split) {
    for (const Arrangement arrangement : {Arrangement::kGiven, Arrangement::kHill}) {
      add("zb-h1", 1, {}, arrangement, NetworkMode::kEager);
      add("zb-h1", kNoWindow, wait, arrangement, NetworkMode::kEager);
    }
  }
  for (const NetworkMode network : {NetworkMode::kRendezvous, NetworkMode::kLaunchQueue}) {
    for (const Arrangement arrangement : {Arrangement::kGiven, Arrangement::kHill}) {
      add(recorded, 1, {}, arrangement, network);
    }
  }
  return variants;
}

}  // namespace rrfp
