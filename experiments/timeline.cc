#include "experiments/timeline.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "experiments/result_report.h"
#include "experiments/trace_events.h"
#include "traces/prepared_case.h"

namespace rrfp {

namespace {

constexpr int kProcess = 0;

class TimelineWriter {
 public:
  TimelineWriter(const PreparedCase& prepared, const SimulationResult& result)
      : prepared_(prepared),
        program_(prepared.program()),
        result_(result),
        starts_ns_(static_cast<std::size_t>(program_.task_ids()), -1),
        events_(other_data()) {}

  std::string write() {
    write_names();
    for (int rank = 0; rank < program_.ranks(); ++rank) write_tasks(rank);
    for (std::size_t i = 0; i < result_.messages.size(); ++i) write_message(i);
    for (int rank = 0; rank < program_.ranks(); ++rank) write_memory(rank);
    return events_.finish();
  }

 private:
  const RankResult& rank_result(int rank) const {
    return result_.ranks[static_cast<std::size_t>(rank)];
  }

  JsonValue other_data() const {
    JsonValue out{JsonObject()};
    out.add("name", JsonValue(prepared_.input().name));
    out.add("policy", JsonValue(describe_policy(prepared_.input().policy)));
    out.add("network", JsonValue(mode_name(prepared_.input().network.mode)));
    out.add("makespan_ns", JsonValue(result_.makespan_ns));
    return out;
  }

  static TraceTrack track(int rank) { return {kProcess, rank}; }

  void write_names() {
    const std::string& name = prepared_.input().name;
    events_.name_process(kProcess, name.empty() ? "rrfp" : name);
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      events_.name_track(track(rank), "rank " + std::to_string(rank));
    }
  }

  void write_tasks(int rank) {
    const RankResult& record = rank_result(rank);
    for (std::size_t i = 0; i < record.order.size(); ++i) {
      const Task& task = record.order[i];
      starts_ns_[static_cast<std::size_t>(program_.find(task))] = record.start_ns[i];
      JsonValue slice = trace_slice(to_string(task), category_of(task.kind), track(rank),
                                    record.start_ns[i], record.end_ns[i]);
      JsonValue arguments{JsonObject()};
      arguments.add("stage", JsonValue(task.stage));
      arguments.add("microbatch", JsonValue(task.microbatch));
      if (!result_.arrangement.empty()) {
        const int given = result_.arrangement[static_cast<std::size_t>(task.microbatch)];
        arguments.add("given microbatch", JsonValue(given));
      }
      if (i < record.decided_ns.size()) {
        arguments.add("decided_ns", JsonValue(record.decided_ns[i]));
      }
      slice.add("args", std::move(arguments));
      events_.add(slice);
    }
  }

  // An arrow binds to the slice around its ends: the last nanosecond of the
  // producer, and the start of the consumer.
  void write_message(std::size_t number) {
    const MessageRecord& message = result_.messages[number];
    const Edge& edge = program_.edge(message.edge);
    const Slot slot = edge.slot();
    const auto at = [&](int stage) {
      return static_cast<std::size_t>(program_.task_id(stage, slot, message.microbatch));
    };
    const std::int64_t consumed_ns = starts_ns_[at(edge.to)];
    if (consumed_ns < 0) return;  // of a blocked run
    const std::int64_t sent_ns = std::max(starts_ns_[at(edge.from)], message.finish_ns - 1);
    const std::string_view name = edge.kind == Kind::kForward ? "activation" : "gradient";
    JsonValue arguments{JsonObject()};
    arguments.add("sent_ns", JsonValue(message.sent_ns));
    arguments.add("arrival_ns", JsonValue(message.arrival_ns));
    events_.add_arrow(name, static_cast<std::int64_t>(number), track(edge.from_rank), sent_ns,
                      track(edge.to_rank), consumed_ns, std::move(arguments));
  }

  // Where the case says nothing of bytes, activations are counted.
  void write_memory(int rank) {
    const bool has_bytes = !prepared_.input().memory.activation_bytes.empty();
    const std::string counter =
        "rank " + std::to_string(rank) + (has_bytes ? " memory" : " activations");
    const std::string_view unit = has_bytes ? "bytes" : "count";
    // What is freed at an instant is free before what is taken then.
    std::int64_t held = 0;
    for (const auto& [ns, change] : memory_changes(rank)) {
      held += change;
      JsonValue sample = trace_event("C", counter, track(rank));
      sample.add("ts", microseconds(ns));
      JsonValue arguments{JsonObject()};
      arguments.add(unit, JsonValue(held));
      sample.add("args", std::move(arguments));
      events_.add(sample);
    }
  }

  std::map<std::int64_t, std::int64_t> memory_changes(int rank) const {
    const Memory& memory = prepared_.input().memory;
    std::map<std::int64_t, std::int64_t> changes;
    const RankResult& record = rank_result(rank);
    for (std::size_t i = 0; i < record.order.size(); ++i) {
      const Task& task = record.order[i];
      const auto at =
          static_cast<std::size_t>(task.stage * program_.microbatches() + task.microbatch);
      const std::int64_t whole = memory.activation_bytes.empty() ? 1 : memory.activation_bytes[at];
      std::int64_t stash =
          memory.weight_stash_bytes.empty() ? whole : memory.weight_stash_bytes[at];
      if (program_.backward_of(task.stage) != Backward::kFull) stash = 0;
      const std::int64_t end_ns = record.end_ns[i];
      switch (task.kind) {
        case Kind::kForward:
          changes[i < record.decided_ns.size() ? record.decided_ns[i] : record.start_ns[i]] +=
              whole;
          if (program_.backward_of(task.stage) == Backward::kNone) changes[end_ns] -= whole;
          break;
        case Kind::kBackward:
          changes[end_ns] -= whole;
          break;
        case Kind::kInputGradient:
          changes[end_ns] -= whole - stash;
          break;
        case Kind::kWeightGradient:
          changes[end_ns] -= stash;
          break;
      }
    }
    return changes;
  }

  const PreparedCase& prepared_;
  const Program& program_;
  const SimulationResult& result_;
  std::vector<std::int64_t> starts_ns_;  // by TaskId; -1: it has not started
  TraceEvents events_;
};

}  // namespace

Result<std::string> timeline(const Case& given, const SimulationResult& result) {
  const Result<std::unique_ptr<const PreparedCase>> prepared = PreparedCase::create(given);
  if (!prepared.ok()) return prepared.error();
  return TimelineWriter(**prepared, result).write();
}

}  // namespace rrfp
