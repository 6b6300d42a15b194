#include "experiments/fit_observations.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/recorded_order.h"
#include "experiments/sample.h"
#include "sim/replay_case.h"
#include "sim/replay_step.h"
#include "traces/saturating.h"

namespace rrfp {

namespace {

/// Later than anything else on the other ranks, and far from the end of int64.
constexpr std::int64_t kLateNs = std::int64_t{1} << 50;

std::int64_t mean_of_sum(std::int64_t sum, std::size_t count) {
  const auto n = static_cast<std::int64_t>(count);
  return n == 0 ? 0 : (sum + n / 2) / n;
}

/// The same iteration with collectives that take no time.
TraceStep without_collectives(const TraceStep& step) {
  TraceStep own = step;
  for (TraceSpan& span : own.spans) {
    if (!span.group.empty()) span.end_ns = span.start_ns;
  }
  return own;
}

/// What stands around the pipeline, summed over iterations.
class FrameSums {
 public:
  explicit FrameSums(const Program& program)
      : program_(program), sync_ns_(static_cast<std::size_t>(program.stages())) {}

  Result<void> add(const TraceHeader& header, const TraceStep& step) {
    const Result<ReplayFrame> frame = ReplayFrame::create(header, step);
    if (!frame.ok()) return frame.error();
    const Result<ReplayFrame> own = ReplayFrame::create(header, without_collectives(step));
    if (!own.ok()) return own.error();
    ++steps_;
    head_ns_ += frame->head_ns();
    std::int64_t optimizer_ns = 0;
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      optimizer_ns = std::max(optimizer_ns, tail_ns(*own, header.replicas, rank));
    }
    optimizer_ns_ += optimizer_ns;
    std::int64_t longest_ns = 0;
    for (int stage = 0; stage < program_.stages(); ++stage) {
      const std::int64_t tail = tail_ns(*frame, header.replicas, program_.rank_of(stage));
      sync_ns_[static_cast<std::size_t>(stage)] += std::max<std::int64_t>(0, tail - optimizer_ns);
      longest_ns = std::max(longest_ns, tail);
    }
    around_ns_.push_back(static_cast<double>(frame->head_ns() + longest_ns));
    return {};
  }

  void store(FitObservations* observed) const {
    observed->head_ns = mean_of_sum(head_ns_, steps_);
    observed->optimizer_ns = mean_of_sum(optimizer_ns_, steps_);
    observed->around_sd_ns = std::llround(standard_deviation(around_ns_));
    for (const std::int64_t sum : sync_ns_) {
      observed->gradient_sync_ns.push_back(mean_of_sum(sum, steps_));
    }
  }

 private:
  /// How long an iteration lasts beyond the tasks of `rank`, if those of its
  /// replicas all end at once and later than all others. The length of an
  /// iteration is a maximum of sums, so these numbers say all about it.
  std::int64_t tail_ns(const ReplayFrame& frame, int replicas, int rank) const {
    const auto ranks = static_cast<std::size_t>(program_.ranks());
    std::vector<std::int64_t> end_ns(static_cast<std::size_t>(replicas) * ranks);
    for (std::size_t i = static_cast<std::size_t>(rank); i < end_ns.size(); i += ranks) {
      end_ns[i] = kLateNs;
    }
    return frame.step_ns(end_ns) - frame.head_ns() - kLateNs;
  }

  const Program& program_;
  std::size_t steps_ = 0;
  std::int64_t head_ns_ = 0;
  std::int64_t optimizer_ns_ = 0;
  std::vector<std::int64_t> sync_ns_;
  std::vector<double> around_ns_;
};

/// The mean of sizes, of which 0 says that none was recorded.
class SizeMean {
 public:
  void add(std::int64_t bytes) {
    if (bytes <= 0) return;
    ++count_;
    sum_ = capped_sum(sum_, bytes);
  }
  std::int64_t mean() const { return count_ == 0 ? 0 : sum_ / count_; }

 private:
  std::int64_t count_ = 0;
  std::int64_t sum_ = 0;
};

class Observer {
 public:
  explicit Observer(const TraceHeader& header)
      : header_(header),
        observed_(header.program),
        collector_(header.program, header.replicas),
        frames_(header.program) {
    observed_.lanes = header.lanes;
    observed_.transfers_ns.resize(header.program.edges().size());
    sizes_.resize(header.program.edges().size());
  }

  Result<void> add(const TraceStep& step) {
    std::vector<Case> replicas;
    for (int replica = 0; replica < header_.replicas; ++replica) {
      Result<Case> made = replay_case(header_, step, replica);
      if (!made.ok()) {
        observed_.dropped.add("an iteration that lacks a task or holds it twice",
                              made.error().message);
        return {};
      }
      replicas.push_back(*std::move(made));
    }
    const Result<ReplayStep> replayed = ReplayStep::create(header_, step, &types_);
    if (!replayed.ok()) return replayed.error();
    if (Result<void> framed = frames_.add(header_, step); !framed.ok()) return framed.error();
    std::vector<std::int64_t> recorded_ns;
    for (const ReplayOperation& operation : replayed->operations()) {
      recorded_ns.push_back(operation.recorded_ns);
    }
    observed_.measured_ns.push_back(replayed->measured_ns());
    observed_.replay_ns.push_back(replayed->run(recorded_ns));
    for (Case& replica : replicas) add_replica(replica);
    add_transfers(step);
    return {};
  }

  Result<FitObservations> finish() && {
    if (observed_.measured_ns.empty()) {
      std::string why = "holds no iteration of which every replica has all its tasks";
      if (observed_.dropped.total() > 0) why += ": " + observed_.dropped.reasons[0].first;
      return Error{why};
    }
    const bool split = header_.program.split_backward() && split_seen_ && !fused_seen_;
    observed_.merged_backwards = header_.program.split_backward() && split_seen_ && fused_seen_;
    if (header_.program.split_backward() && !split) {
      ProgramSpec spec = header_.program.spec();
      spec.split_backward = false;
      Result<Program> whole = Program::create(std::move(spec));
      if (!whole.ok()) return whole.error();
      observed_.program = *std::move(whole);
      for (std::vector<Task>& rank : observed_.order) merge_backwards(&rank);
    }
    observed_.durations = collector_.table(split);
    observed_.schedule = schedule_name(observed_.program, observed_.order);
    frames_.store(&observed_);
    for (const SizeMean& size : sizes_) observed_.message_bytes.push_back(size.mean());
    return std::move(observed_);
  }

 private:
  void add_replica(Case& made) {
    collector_.add(made.duration_ns);
    std::vector<std::vector<Task>>& order = made.policy.hint.order;
    for (const std::vector<Task>& rank : order) {
      for (const Task& task : rank) {
        fused_seen_ = fused_seen_ || task.kind == Kind::kBackward;
        split_seen_ =
            split_seen_ || task.kind == Kind::kInputGradient || task.kind == Kind::kWeightGradient;
      }
    }
    if (observed_.order.empty()) {
      observed_.order = std::move(order);
    } else if (order != observed_.order) {
      ++observed_.other_orders;
    }
  }

  /// As replay_case() counts them: from the later post to the receiver's end.
  void add_transfers(const TraceStep& step) {
    const Program& program = header_.program;
    std::int64_t seen = 0;
    for (const TraceMessage& message : step.messages) {
      const EdgeId edge = program.find_edge(message.kind, message.from_stage, message.to_stage);
      if (edge < 0 || !program.edge(edge).crosses()) continue;
      const std::int64_t match_ns = std::max(message.send.post_ns, message.receive.post_ns);
      observed_.transfers_ns[static_cast<std::size_t>(edge)].push_back(
          std::max<std::int64_t>(0, message.receive.done_ns - match_ns));
      sizes_[static_cast<std::size_t>(edge)].add(message.bytes);
      ++seen;
    }
    const auto edges = std::count_if(program.edges().begin(), program.edges().end(),
                                     [](const Edge& edge) { return edge.crosses(); });
    const std::int64_t due =
        std::int64_t{edges} * program.microbatches() * header_.replicas * header_.lanes;
    observed_.lost_transfers += std::max<std::int64_t>(0, due - seen);
  }

  static void merge_backwards(std::vector<Task>* order) {
    std::erase_if(*order, [](const Task& task) { return task.kind == Kind::kWeightGradient; });
    for (Task& task : *order) {
      if (task.kind == Kind::kInputGradient) task.kind = Kind::kBackward;
    }
  }

  const TraceHeader& header_;
  FitObservations observed_;
  DurationCollector collector_;
  FrameSums frames_;
  std::vector<SizeMean> sizes_;  ///< by EdgeId
  ReplayTypes types_;
  bool fused_seen_ = false;
  bool split_seen_ = false;
};

}  // namespace

DurationCollector::DurationCollector(const Program& program, int replicas)
    : program_(program),
      replicas_(replicas),
      ns_(static_cast<std::size_t>(program.stages()) * kSlots) {}

void DurationCollector::add(std::span<const std::int64_t> duration_ns) {
  const auto m = static_cast<std::size_t>(program_.microbatches());
  for (std::size_t row = 0; row < ns_.size(); ++row) {
    const auto first = duration_ns.subspan(row * m, m);
    ns_[row].insert(ns_[row].end(), first.begin(), first.end());
  }
}

DurationTable DurationCollector::table(bool split) const {
  DurationTable table;
  table.replicas = replicas_;
  table.microbatches = program_.microbatches();
  const std::size_t rows_per_iteration =
      static_cast<std::size_t>(replicas_) * static_cast<std::size_t>(table.microbatches);
  table.iterations = static_cast<int>(ns_[0].size() / rows_per_iteration);
  const auto add_column = [&](Kind kind, int stage, const std::vector<std::int64_t>& ns) {
    table.columns.push_back({kind, stage, program_.rank_of(stage)});
    table.ns.insert(table.ns.end(), ns.begin(),
                    ns.begin() + static_cast<std::ptrdiff_t>(table.rows()));
  };
  for (int stage = 0; stage < program_.stages(); ++stage) {
    add_column(Kind::kForward, stage, of(stage, Slot::kForward));
    const Backward backward = program_.backward_of(stage);
    if (backward == Backward::kNone) continue;
    const std::vector<std::int64_t>& input = of(stage, Slot::kBackward);
    const std::vector<std::int64_t>& weight = of(stage, Slot::kWeight);
    if (split) {
      add_column(Kind::kInputGradient, stage, input);
      if (backward == Backward::kFull) add_column(Kind::kWeightGradient, stage, weight);
      continue;
    }
    std::vector<std::int64_t> whole = input;
    for (std::size_t row = 0; row < whole.size(); ++row) whole[row] += weight[row];
    add_column(Kind::kBackward, stage, whole);
  }
  return table;
}

Result<FitObservations> observe(TraceSource& source) {
  if (Result<void> rewound = source.rewind(); !rewound.ok()) return rewound.error();
  Observer observer(source.header());
  TraceStep step;
  while (true) {
    const Result<bool> more = source.next(&step);
    if (!more.ok()) return more.error();
    if (!*more) break;
    if (step.tasks.empty()) continue;
    if (Result<void> added = observer.add(step); !added.ok()) return added.error();
  }
  return std::move(observer).finish();
}

}  // namespace rrfp
