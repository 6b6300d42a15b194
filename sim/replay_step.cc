#include "sim/replay_step.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "scheduler_core/check.h"

namespace rrfp {

ReplayTypes::ReplayTypes()
    : names_{"F", "B", "I", "W", "F send", "F receive", "B send", "B receive"} {}

int ReplayTypes::span_type(const std::string& name) {
  const auto [entry, added] = spans_.emplace(name, size());
  if (added) names_.push_back(name);
  return entry->second;
}

namespace {

constexpr double kMostTasks = 1 << 28;
/// Times of a replay stay within int64: five hours an operation, and so many
/// of the longest one after another.
constexpr std::int64_t kMostNs = std::int64_t{1} << 44;
constexpr std::int64_t kMostSumNs = std::int64_t{1} << 62;

}  // namespace

/// Numbers operations as they are added ("nodes"), then sorts them.
class ReplayStepBuilder {
 public:
  ReplayStepBuilder(const TraceHeader& header, const TraceStep& step, ReplayTypes* types)
      : header_(header), program_(header.program), step_(step), types_(*types) {}

  Result<ReplayStep> build() {
    built_.iteration_ = step_.iteration;
    const auto copies = static_cast<double>(header_.replicas) * header_.lanes;
    if (copies * program_.task_ids() > kMostTasks) {
      return Error{"replicas times lanes times tasks is too large to replay"};
    }
    add_tasks();
    add_spans();
    chain(&serial_);
    add_messages();
    chain(&streams_);
    measure();
    for (const ReplayOperation& node : nodes_) {
      if (node.recorded_ns > kMostNs ||
          node.recorded_ns > kMostSumNs / static_cast<std::int64_t>(nodes_.size())) {
        return Error{"iteration " + std::to_string(step_.iteration) + ": an operation of " +
                     std::to_string(node.recorded_ns) + " ns is too long to replay"};
      }
    }
    if (!sort()) {
      return Error{"iteration " + std::to_string(step_.iteration) +
                   ": the recorded order contradicts itself, so it cannot be replayed"};
    }
    return std::move(built_);
  }

 private:
  /// Something on a line of operations that follow each other.
  struct Entry {
    std::int64_t line = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    int node = 0;

    auto order() const { return std::tie(line, start_ns, end_ns, node); }
  };

  int add(const ReplayOperation& operation, int unit) {
    nodes_.push_back(operation);
    unit_of_.push_back(unit);
    return static_cast<int>(nodes_.size()) - 1;
  }
  int new_unit() { return units_++; }
  void depend(int node, int on) { dependencies_.emplace_back(node, on); }
  void seen(std::int64_t start_ns, std::int64_t end_ns) {
    first_ns_ = std::min(first_ns_, start_ns);
    last_ns_ = std::max(last_ns_, end_ns);
  }

  std::int64_t line_of(int replica, int rank, int lane) const {
    return (std::int64_t{replica} * program_.ranks() + rank) * header_.lanes + lane;
  }
  int& node_of(int replica, int lane, int stage, Slot slot, int microbatch) {
    const std::int64_t copy = std::int64_t{replica} * header_.lanes + lane;
    return task_nodes_[copy * program_.task_ids() + program_.task_id(stage, slot, microbatch)];
  }

  void add_tasks() {
    task_nodes_.assign(
        static_cast<std::size_t>(header_.replicas) * header_.lanes * program_.task_ids(), -1);
    for (const TraceTask& task : step_.tasks) {
      const int type = ReplayTypes::kTasks + static_cast<int>(task.task.kind);
      const int node = add(
          {type, task.replica, task.task.stage, false, task.end_ns - task.start_ns}, new_unit());
      const Slot slot = task.task.kind == Kind::kForward          ? Slot::kForward
                        : task.task.kind == Kind::kWeightGradient ? Slot::kWeight
                                                                  : Slot::kBackward;
      int& known = node_of(task.replica, task.lane, task.task.stage, slot, task.task.microbatch);
      if (known < 0) known = node;
      serial_.push_back(
          {line_of(task.replica, task.rank, task.lane), task.start_ns, task.end_ns, node});
      seen(task.start_ns, task.end_ns);
    }
  }

  void add_spans() {
    struct Group {
      int unit = 0;
      std::int64_t latest_start_ns = 0;
    };
    std::map<std::pair<std::string, std::string>, Group> groups;
    for (const TraceSpan& span : step_.spans) {
      if (span.group.empty()) continue;
      const auto [entry, added] =
          groups.try_emplace({span.name, span.group}, Group{0, span.start_ns});
      if (added) entry->second.unit = new_unit();
      entry->second.latest_start_ns = std::max(entry->second.latest_start_ns, span.start_ns);
    }
    for (const TraceSpan& span : step_.spans) {
      ReplayOperation operation{types_.span_type(span.name), span.replica, 0, !span.group.empty(),
                                span.end_ns - span.start_ns};
      const auto stages = program_.stages_of(span.rank);
      if (!stages.empty()) operation.stage = stages.front();
      int unit = -1;
      if (operation.waits) {
        const Group& group = groups.at({span.name, span.group});
        unit = group.unit;
        operation.recorded_ns = std::max<std::int64_t>(0, span.end_ns - group.latest_start_ns);
      } else {
        unit = new_unit();
      }
      serial_.push_back({line_of(span.replica, span.rank, span.lane), span.start_ns, span.end_ns,
                         add(operation, unit)});
      seen(span.start_ns, span.end_ns);
    }
  }

  void add_messages() {
    for (const TraceMessage& message : step_.messages) {
      const bool activation = message.kind == Kind::kForward;
      const Slot slot = activation ? Slot::kForward : Slot::kBackward;
      const int type = ReplayTypes::kMessages + (activation ? 0 : 2);
      const std::int64_t match_ns = std::max(message.send.post_ns, message.receive.post_ns);
      const auto transfer_ns = [match_ns](const MessageTimes& times) {
        return std::max<std::int64_t>(0, times.done_ns - match_ns);
      };
      const int unit = new_unit();
      const int send =
          add({type, message.replica, message.from_stage, true, transfer_ns(message.send)}, unit);
      const int receive = add(
          {type + 1, message.replica, message.to_stage, true, transfer_ns(message.receive)}, unit);
      const int producer =
          node_of(message.replica, message.lane, message.from_stage, slot, message.microbatch);
      const int consumer =
          node_of(message.replica, message.lane, message.to_stage, slot, message.microbatch);
      if (producer >= 0) depend(send, producer);
      if (consumer >= 0) depend(consumer, receive);
      const auto stream = [&](int stage, int which) {
        return line_of(message.replica, program_.rank_of(stage), message.lane) * 4 + which;
      };
      const int kind = activation ? 0 : 1;
      streams_.push_back(
          {stream(message.from_stage, kind), message.send.post_ns, message.send.done_ns, send});
      streams_.push_back({stream(message.to_stage, 2 + kind), message.receive.post_ns,
                          message.receive.done_ns, receive});
      seen(message.send.post_ns, message.send.done_ns);
      seen(message.receive.post_ns, message.receive.done_ns);
    }
  }

  /// Each entry after the one before it on its line.
  void chain(std::vector<Entry>* entries) {
    std::sort(entries->begin(), entries->end(),
              [](const Entry& a, const Entry& b) { return a.order() < b.order(); });
    for (std::size_t i = 1; i < entries->size(); ++i) {
      const Entry& before = (*entries)[i - 1];
      const Entry& after = (*entries)[i];
      if (before.line == after.line) depend(after.node, before.node);
    }
  }

  void measure() {
    if (nodes_.empty()) return;
    built_.measured_ns_ = last_ns_ - (header_.origin == "iteration" ? 0 : first_ns_);
  }

  /// Lists by key in one array: those of key k end at ends[k].
  static void flatten(const std::vector<std::pair<int, int>>& pairs, int keys,
                      std::vector<int>* ends, std::vector<int>* values) {
    ends->assign(static_cast<std::size_t>(keys), 0);
    for (const auto& [key, value] : pairs) ++(*ends)[key];
    int total = 0;
    for (int& end : *ends) end = std::exchange(total, total + end);
    values->resize(pairs.size());
    for (const auto& [key, value] : pairs) (*values)[(*ends)[key]++] = value;
  }

  /// Puts the nodes in an order in which they can run; false where there is
  /// none.
  bool sort() {
    const int count = static_cast<int>(nodes_.size());
    std::vector<std::pair<int, int>> members;
    std::vector<std::pair<int, int>> successors;
    std::vector<int> open(static_cast<std::size_t>(units_));
    for (int node = 0; node < count; ++node) members.emplace_back(unit_of_[node], node);
    for (const auto& [node, on] : dependencies_) {
      successors.emplace_back(on, unit_of_[node]);
      ++open[unit_of_[node]];
    }
    std::vector<int> member_ends, member_list, successor_ends, successor_list;
    flatten(members, units_, &member_ends, &member_list);
    flatten(successors, count, &successor_ends, &successor_list);

    std::vector<int> ready;
    for (int unit = 0; unit < units_; ++unit) {
      if (open[unit] == 0) ready.push_back(unit);
    }
    std::vector<int> place(static_cast<std::size_t>(count), -1);
    std::vector<int> order;
    for (std::size_t head = 0; head < ready.size(); ++head) {
      const int unit = ready[head];
      for (int i = unit == 0 ? 0 : member_ends[unit - 1]; i < member_ends[unit]; ++i) {
        const int node = member_list[i];
        place[node] = static_cast<int>(order.size());
        order.push_back(node);
        for (int j = node == 0 ? 0 : successor_ends[node - 1]; j < successor_ends[node]; ++j) {
          if (--open[successor_list[j]] == 0) ready.push_back(successor_list[j]);
        }
      }
      built_.unit_ends_.push_back(static_cast<int>(order.size()));
    }
    if (static_cast<int>(order.size()) != count) return false;

    std::vector<std::pair<int, int>> predecessors;
    for (const auto& [node, on] : dependencies_) predecessors.emplace_back(place[node], place[on]);
    flatten(predecessors, count, &built_.predecessor_ends_, &built_.predecessors_);
    for (const int node : order) built_.operations_.push_back(nodes_[node]);
    return true;
  }

  const TraceHeader& header_;
  const Program& program_;
  const TraceStep& step_;
  ReplayTypes& types_;
  ReplayStep built_;
  std::vector<ReplayOperation> nodes_;
  std::vector<int> unit_of_;
  int units_ = 0;
  std::vector<std::pair<int, int>> dependencies_;  ///< node, what it waits for
  std::vector<int> task_nodes_;  ///< by replica, lane and TaskId; -1: not recorded
  std::vector<Entry> serial_;    ///< tasks and spans, a line per device
  std::vector<Entry> streams_;   ///< ends of messages, a line per device, kind and direction
  std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
};

Result<ReplayStep> ReplayStep::create(const TraceHeader& header, const TraceStep& step,
                                      ReplayTypes* types) {
  return ReplayStepBuilder(header, step, types).build();
}

std::int64_t ReplayStep::run(std::span<const std::int64_t> duration_ns,
                             std::span<std::int64_t> end_ns) const {
  RRFP_CHECK(duration_ns.size() == operations_.size());
  std::vector<std::int64_t> own;
  if (end_ns.empty()) {
    own.resize(operations_.size());
    end_ns = own;
  }
  RRFP_CHECK(end_ns.size() == operations_.size());
  std::int64_t last_ns = 0;
  int operation = 0;
  int predecessor = 0;
  for (const int unit_end : unit_ends_) {
    const int unit_begin = operation;
    std::int64_t start_ns = 0;
    for (; operation < unit_end; ++operation) {
      for (; predecessor < predecessor_ends_[operation]; ++predecessor) {
        start_ns = std::max(start_ns, end_ns[predecessors_[predecessor]]);
      }
    }
    for (int i = unit_begin; i < unit_end; ++i) {
      end_ns[i] = start_ns + duration_ns[i];
      last_ns = std::max(last_ns, end_ns[i]);
    }
  }
  return last_ns;
}

}  // namespace rrfp
