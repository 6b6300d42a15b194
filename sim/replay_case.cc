#include "sim/replay_case.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

namespace rrfp {

namespace {

/// When the tasks of one device (replica, rank, lane) were recorded.
struct Extent {
  std::int64_t first_start_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_start_ns = std::numeric_limits<std::int64_t>::min();
};
using Device = std::tuple<int, int, int>;

std::map<Device, Extent> extents_of(const TraceStep& step) {
  std::map<Device, Extent> extents;
  for (const TraceTask& task : step.tasks) {
    Extent& extent = extents[{task.replica, task.rank, task.lane}];
    extent.first_start_ns = std::min(extent.first_start_ns, task.start_ns);
    extent.last_start_ns = std::max(extent.last_start_ns, task.start_ns);
  }
  return extents;
}

bool is_head(const TraceSpan& span, const Extent& extent) {
  return span.start_ns < extent.first_start_ns;
}
bool is_tail(const TraceSpan& span, const Extent& extent) {
  return span.start_ns >= extent.last_start_ns;
}

Error wrong(const TraceStep& step, int replica, const std::string& what) {
  return Error{"iteration " + std::to_string(step.iteration) + ", replica " +
               std::to_string(replica) + ": " + what};
}

/// The tasks of one replica: durations and recorded order.
class CaseBuilder {
 public:
  CaseBuilder(const TraceHeader& header, const TraceStep& step, int replica)
      : header_(header), step_(step), replica_(replica), program_(fitted()) {}

  Result<Case> build() {
    Case built{.name = "iteration " + std::to_string(step_.iteration) + " replica " +
                       std::to_string(replica_),
               .program = program_,
               .duration_ns = {},
               .expected_ns = {},
               .input_ready_ns = {},
               .dispatch_ns = 0,
               .queue_depth = 1,
               .tensor_parallel = {},
               .network = {},
               .memory = {},
               .policy = {}};
    built.policy.window = 1;
    if (Result<void> tasks = add_tasks(&built); !tasks.ok()) return tasks.error();
    add_latencies(&built);
    return built;
  }

 private:
  /// With the backwards that were recorded as one B.
  Program fitted() const {
    const Program& program = header_.program;
    if (!program.split_backward()) return program;
    std::vector<bool> fused(static_cast<std::size_t>(program.stages()) * program.microbatches());
    for (const TraceTask& task : step_.tasks) {
      if (task.replica != replica_ || task.task.kind != Kind::kBackward) continue;
      fused[task.task.stage * program.microbatches() + task.task.microbatch] = true;
    }
    return program.with_fused(std::move(fused));
  }

  /// A task, or (null) a span, of one device.
  struct Entry {
    int lane = 0;
    int rank = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    const TraceTask* task = nullptr;

    auto order() const { return std::tie(lane, rank, start_ns, end_ns); }
  };

  std::vector<Entry> sorted_entries() const {
    std::vector<Entry> entries;
    for (const TraceTask& task : step_.tasks) {
      if (task.replica != replica_) continue;
      entries.push_back({task.lane, task.rank, task.start_ns, task.end_ns, &task});
    }
    for (const TraceSpan& span : step_.spans) {
      if (span.replica != replica_) continue;
      entries.push_back({span.lane, span.rank, span.start_ns, span.end_ns, nullptr});
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.order() < b.order(); });
    return entries;
  }

  Result<void> add_tasks(Case* built) const {
    built->policy.hint.name.clear();
    std::vector<std::vector<Task>>& order = built->policy.hint.order;
    order.resize(static_cast<std::size_t>(program_.ranks()));
    built->duration_ns.assign(static_cast<std::size_t>(program_.task_ids()), 0);
    std::vector<int> seen_by_lane(built->duration_ns.size(), -1);
    std::vector<bool> in_lane_0(built->duration_ns.size());
    const Entry* before = nullptr;  // the task before on the same device
    std::int64_t spans_ns = 0;      // since then
    const std::vector<Entry> entries = sorted_entries();
    for (const Entry& entry : entries) {
      if (before == nullptr || before->lane != entry.lane || before->rank != entry.rank) {
        before = nullptr;
        spans_ns = 0;
      }
      if (entry.task == nullptr) {
        if (before != nullptr) spans_ns += entry.end_ns - entry.start_ns;
        continue;
      }
      const Task& task = entry.task->task;
      const TaskId id = program_.find(task);
      if (id == kNoTask) return wrong(step_, replica_, to_string(task) + " has no place");
      if (seen_by_lane[id] == entry.lane) {
        return wrong(step_, replica_, to_string(task) + " ran twice");
      }
      seen_by_lane[id] = entry.lane;
      if (entry.lane == 0) {
        order[entry.rank].push_back(task);
        in_lane_0[id] = true;
      }
      built->duration_ns[id] =
          std::max(built->duration_ns[id], entry.end_ns - entry.start_ns + spans_ns);
      before = &entry;
      spans_ns = 0;
    }
    for (TaskId id = 0; id < program_.task_ids(); ++id) {
      if (program_.exists(id) && !in_lane_0[id]) {
        return wrong(step_, replica_, to_string(program_.task(id)) + " is missing");
      }
    }
    return {};
  }

  void add_latencies(Case* built) const {
    built->network.latency_ns.resize(program_.edges().size());
    for (const TraceMessage& message : step_.messages) {
      if (message.replica != replica_) continue;
      const EdgeId edge = program_.find_edge(message.kind, message.from_stage, message.to_stage);
      if (edge < 0) continue;
      std::vector<std::int64_t>& latency_ns = built->network.latency_ns[edge];
      latency_ns.resize(static_cast<std::size_t>(program_.microbatches()));
      const std::int64_t match_ns = std::max(message.send.post_ns, message.receive.post_ns);
      std::int64_t& slowest_ns = latency_ns[message.microbatch];
      slowest_ns = std::max(slowest_ns, message.receive.done_ns - match_ns);
    }
  }

  const TraceHeader& header_;
  const TraceStep& step_;
  int replica_;
  Program program_;
};

}  // namespace

Result<Case> replay_case(const TraceHeader& header, const TraceStep& step, int replica) {
  return CaseBuilder(header, step, replica).build();
}

Result<ReplayFrame> ReplayFrame::create(const TraceHeader& header, const TraceStep& step) {
  const std::map<Device, Extent> extents = extents_of(step);
  TraceStep head;
  TraceStep tail;
  head.iteration = tail.iteration = step.iteration;
  for (const TraceSpan& span : step.spans) {
    const auto extent = extents.find({span.replica, span.rank, span.lane});
    const bool idle = extent == extents.end();  // a device without tasks
    if (!idle && is_head(span, extent->second)) {
      head.spans.push_back(span);
    } else if (idle || is_tail(span, extent->second)) {
      tail.spans.push_back(span);
    }
  }
  std::set<Device> stood;
  // One task stands for all of a device's; it is recorded where the last is.
  for (const TraceTask& task : step.tasks) {
    const Extent& extent = extents.at({task.replica, task.rank, task.lane});
    if (task.start_ns != extent.last_start_ns) continue;
    if (stood.insert({task.replica, task.rank, task.lane}).second) tail.tasks.push_back(task);
  }
  ReplayTypes types;
  const Result<ReplayStep> before = ReplayStep::create(header, head, &types);
  if (!before.ok()) return before.error();
  Result<ReplayStep> after = ReplayStep::create(header, tail, &types);
  if (!after.ok()) return after.error();

  ReplayFrame frame(*std::move(after));
  frame.ranks_ = header.program.ranks();
  std::vector<std::int64_t> head_lengths_ns;
  for (const ReplayOperation& operation : before->operations()) {
    head_lengths_ns.push_back(operation.recorded_ns);
  }
  frame.head_ns_ = before->run(head_lengths_ns);
  for (const ReplayOperation& operation : frame.tail_.operations()) {
    const bool task = operation.type < ReplayTypes::kMessages;
    frame.rank_.push_back(
        task ? operation.replica * frame.ranks_ + header.program.rank_of(operation.stage) : -1);
  }
  return frame;
}

std::int64_t ReplayFrame::step_ns(std::span<const std::int64_t> end_ns) const {
  std::vector<std::int64_t> lengths_ns;
  for (std::size_t i = 0; i < rank_.size(); ++i) {
    lengths_ns.push_back(rank_[i] < 0 ? tail_.operations()[i].recorded_ns
                                      : head_ns_ + end_ns[static_cast<std::size_t>(rank_[i])]);
  }
  return tail_.run(lengths_ns);
}

}  // namespace rrfp
