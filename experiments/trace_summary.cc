#include "experiments/trace_summary.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "experiments/statistics.h"

namespace rrfp {

namespace {

/// Something that holds a device for a while.
struct Held {
  std::int64_t device = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  const TraceTask* task = nullptr;  ///< null: a span

  auto order() const { return std::tie(device, start_ns, end_ns); }
};

class StepSummary {
 public:
  StepSummary(const TraceHeader& header, const TraceStep& step, TraceSummary* summary)
      : header_(header), program_(header.program), step_(step), summary_(*summary) {}

  void add() {
    add_iteration();
    add_lengths();
    if (!step_.tasks.empty()) add_devices();  // spans alone are sums, not a timeline
    check_tasks();
    check_messages();
  }

 private:
  void odd(const std::string& what, int replica, const std::string& where) {
    summary_.oddities.add(what, "iteration " + std::to_string(step_.iteration) + ", replica " +
                                    std::to_string(replica) + (where.empty() ? "" : ", ") + where);
  }

  void add_iteration() {
    if (summary_.iterations > 0 && step_.iteration < summary_.last_iteration) {
      summary_.ascending = false;
    }
    if (summary_.iterations++ == 0) summary_.first_iteration = step_.iteration;
    summary_.first_iteration = std::min(summary_.first_iteration, step_.iteration);
    summary_.last_iteration = std::max(summary_.last_iteration, step_.iteration);
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
    const auto seen = [&](std::int64_t start_ns, std::int64_t end_ns) {
      first_ns = std::min(first_ns, start_ns);
      last_ns = std::max(last_ns, end_ns);
    };
    for (const TraceTask& task : step_.tasks) seen(task.start_ns, task.end_ns);
    for (const TraceSpan& span : step_.spans) seen(span.start_ns, span.end_ns);
    for (const TraceMessage& message : step_.messages) {
      seen(message.send.post_ns, message.send.done_ns);
      seen(message.receive.post_ns, message.receive.done_ns);
    }
    begin_ns_ = header_.origin == "iteration" ? std::min<std::int64_t>(0, first_ns) : first_ns;
    end_ns_ = last_ns;
    summary_.iteration.add(end_ns_ - (header_.origin == "iteration" ? 0 : first_ns));
  }

  void add_lengths() {
    summary_.tasks += static_cast<std::int64_t>(step_.tasks.size());
    summary_.messages += static_cast<std::int64_t>(step_.messages.size());
    summary_.spans += static_cast<std::int64_t>(step_.spans.size());
    for (const TraceTask& task : step_.tasks) {
      summary_.task_kinds[std::string(1, letter(task.task.kind))].add(task.end_ns - task.start_ns);
    }
    for (const TraceSpan& span : step_.spans) {
      summary_.span_names[span.name].add(span.end_ns - span.start_ns);
      if (!span.group.empty()) ++summary_.collectives[span.name];
    }
    for (const TraceMessage& message : step_.messages) {
      const std::int64_t match_ns = std::max(message.send.post_ns, message.receive.post_ns);
      summary_.transfers[std::string(1, letter(message.kind))].add(
          std::max<std::int64_t>(0, message.receive.done_ns - match_ns));
    }
  }

  std::int64_t device_of(int replica, int rank, int lane) const {
    return (std::int64_t{replica} * program_.ranks() + rank) * header_.lanes + lane;
  }

  /// Goes through each device in time; spans count where no task runs.
  void add_devices() {
    std::vector<Held> held;
    for (const TraceTask& task : step_.tasks) {
      held.push_back(
          {device_of(task.replica, task.rank, task.lane), task.start_ns, task.end_ns, &task});
    }
    for (const TraceSpan& span : step_.spans) {
      held.push_back(
          {device_of(span.replica, span.rank, span.lane), span.start_ns, span.end_ns, nullptr});
    }
    std::stable_sort(held.begin(), held.end(),
                     [](const Held& a, const Held& b) { return a.order() < b.order(); });
    for (std::size_t first = 0; first < held.size();) {
      std::size_t last = first;
      while (last < held.size() && held[last].device == held[first].device) ++last;
      add_device(std::span(held).subspan(first, last - first));
      first = last;
    }
  }

  void add_device(std::span<const Held> held) {
    const auto rank = static_cast<std::size_t>(held[0].device / header_.lanes % program_.ranks());
    RankSummary& of_rank = summary_.ranks[rank];
    std::int64_t at_ns = begin_ns_;
    const auto gap_until = [&](std::int64_t ns) {
      if (ns <= at_ns) return;
      of_rank.gaps_ns += ns - at_ns;
      of_rank.longest_gap_ns = std::max(of_rank.longest_gap_ns, ns - at_ns);
    };
    for (const Held& one : held) {
      gap_until(one.start_ns);
      const std::int64_t alone_ns = std::max(at_ns, one.end_ns) - std::max(at_ns, one.start_ns);
      (one.task != nullptr ? of_rank.tasks_ns : of_rank.spans_ns) +=
          std::max<std::int64_t>(0, alone_ns);
      if (one.start_ns < at_ns && one.end_ns > one.start_ns && &one != &held[0]) {
        summary_.longest_overlap_ns =
            std::max(summary_.longest_overlap_ns, std::min(at_ns, one.end_ns) - one.start_ns);
        odd("two records overlap on a device",
            static_cast<int>(one.device / header_.lanes) / program_.ranks(),
            one.task != nullptr ? to_string(one.task->task) : "a span");
      }
      at_ns = std::max(at_ns, one.end_ns);
    }
    gap_until(end_ns_);
  }

  void check_tasks() {
    using Key = std::tuple<int, int, Task>;
    std::vector<Key> keys;
    for (const TraceTask& task : step_.tasks) {
      keys.emplace_back(task.replica, task.lane, task.task);
      if (task.start_ns == task.end_ns) {
        odd("a task takes no time", task.replica, to_string(task.task));
      }
      if (task.start_ns < task.ready_ns) {
        odd("a task starts before it was ready", task.replica, to_string(task.task));
      }
    }
    std::sort(keys.begin(), keys.end());
    std::int64_t covered = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto& [replica, lane, task] = keys[i];
      if (i > 0 && keys[i] == keys[i - 1]) {
        odd("a task ran twice", replica, to_string(task));
        continue;
      }
      ++covered;
      const bool stands_for_both = task.kind == Kind::kBackward && program_.split_backward() &&
                                   program_.exists(program_.task_id(task.stage, Slot::kWeight, 0));
      if (stands_for_both) ++covered;
    }
    std::int64_t expected = 0;
    for (TaskId id = 0; id < program_.task_ids(); ++id) expected += program_.exists(id) ? 1 : 0;
    expected *= std::int64_t{header_.replicas} * header_.lanes;
    if (covered > 0 && covered != expected) {
      summary_.oddities.add("an iteration lacks tasks",
                            "iteration " + std::to_string(step_.iteration) + ": holds " +
                                std::to_string(covered) + " of " + std::to_string(expected));
    }
  }

  void check_messages() {
    for (const TraceMessage& message : step_.messages) {
      const std::int64_t match_ns = std::max(message.send.post_ns, message.receive.post_ns);
      if (message.receive.done_ns >= match_ns && message.send.done_ns >= match_ns) continue;
      odd("a message ended before both ends had started", message.replica,
          std::to_string(message.from_stage) + " to " + std::to_string(message.to_stage) +
              ", microbatch " + std::to_string(message.microbatch));
    }
  }

  const TraceHeader& header_;
  const Program& program_;
  const TraceStep& step_;
  TraceSummary& summary_;
  std::int64_t begin_ns_ = 0;
  std::int64_t end_ns_ = 0;
};

}  // namespace

void LengthSummary::add(std::int64_t ns) {
  ++count_;
  sum_ns_ += ns;
  if (exact_.size() < kExact) exact_.push_back(ns);
  lengths_.add(std::max<std::int64_t>(0, ns));
}

double LengthSummary::mean_ns() const {
  return count_ == 0 ? 0 : static_cast<double>(sum_ns_) / static_cast<double>(count_);
}

std::int64_t LengthSummary::percentile_ns(int percent) const {
  if (count_ == 0) return 0;
  const bool exact = count_ == static_cast<std::int64_t>(exact_.size());
  return exact ? percentile(exact_, percent) : lengths_.percentile(percent);
}

Result<TraceSummary> summarize_trace(TraceSource& source) {
  TraceSummary summary;
  summary.ranks.resize(static_cast<std::size_t>(source.header().program.ranks()));
  TraceStep step;
  while (true) {
    const Result<bool> more = source.next(&step);
    if (!more.ok()) return more.error();
    if (!*more) return summary;
    StepSummary(source.header(), step, &summary).add();
  }
}

}  // namespace rrfp
