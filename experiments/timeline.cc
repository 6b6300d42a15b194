#include "experiments/timeline.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "experiments/result_report.h"
#include "traces/json_writer.h"
#include "traces/prepared_case.h"

namespace rrfp {

namespace {

constexpr int kProcess = 0;

// Nanoseconds as the format's microseconds.
JsonValue microseconds(std::int64_t ns) {
  std::string fraction = std::to_string(ns % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  return JsonValue(Decimal{std::to_string(ns / 1000) + "." + fraction});
}

std::string_view category(Kind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"forward", "backward", "input gradient",
                                                      "weight gradient"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Writes one event after the other; a whole run as one JSON tree would take
// several times the memory of its text.
class TimelineWriter {
 public:
  TimelineWriter(const PreparedCase& prepared, const SimulationResult& result)
      : prepared_(prepared),
        program_(prepared.program()),
        result_(result),
        starts_ns_(static_cast<std::size_t>(program_.task_ids()), -1) {}

  std::string write() {
    text_ =
        "{\"displayTimeUnit\":\"ns\",\"otherData\":" + to_text(other_data(), JsonLayout::kCompact) +
        ",\"traceEvents\":[\n";
    write_names();
    for (int rank = 0; rank < program_.ranks(); ++rank) write_tasks(rank);
    for (std::size_t i = 0; i < result_.messages.size(); ++i) write_message(i);
    for (int rank = 0; rank < program_.ranks(); ++rank) write_memory(rank);
    return text_ + "\n]}\n";
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

  void add(JsonValue event) {
    if (!first_) text_ += ",\n";
    first_ = false;
    text_ += to_text(event, JsonLayout::kCompact);
  }

  static JsonValue event(std::string_view phase, std::string_view name, int rank) {
    JsonValue out{JsonObject()};
    out.add("ph", JsonValue(phase));
    out.add("name", JsonValue(name));
    out.add("pid", JsonValue(kProcess));
    out.add("tid", JsonValue(rank));
    return out;
  }

  void write_names() {
    const auto meta = [this](std::string_view what, int rank, std::string_view key,
                             JsonValue value) {
      JsonValue arguments{JsonObject()};
      arguments.add(key, std::move(value));
      JsonValue named = event("M", what, rank);
      named.add("args", std::move(arguments));
      add(std::move(named));
    };
    const std::string& name = prepared_.input().name;
    meta("process_name", 0, "name", JsonValue(name.empty() ? "rrfp" : name));
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      meta("thread_name", rank, "name", JsonValue("rank " + std::to_string(rank)));
      meta("thread_sort_index", rank, "sort_index", JsonValue(rank));
    }
  }

  void write_tasks(int rank) {
    const RankResult& record = rank_result(rank);
    for (std::size_t i = 0; i < record.order.size(); ++i) {
      const Task& task = record.order[i];
      starts_ns_[static_cast<std::size_t>(program_.find(task))] = record.start_ns[i];
      JsonValue slice = event("X", to_string(task), rank);
      slice.add("cat", JsonValue(category(task.kind)));
      slice.add("ts", microseconds(record.start_ns[i]));
      slice.add("dur", microseconds(record.end_ns[i] - record.start_ns[i]));
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
      add(std::move(slice));
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
    JsonValue from = event("s", name, edge.from_rank);
    from.add("cat", JsonValue("message"));
    from.add("id", JsonValue(static_cast<std::int64_t>(number)));
    from.add("ts", microseconds(sent_ns));
    JsonValue arguments{JsonObject()};
    arguments.add("sent_ns", JsonValue(message.sent_ns));
    arguments.add("arrival_ns", JsonValue(message.arrival_ns));
    from.add("args", std::move(arguments));
    add(std::move(from));
    JsonValue to = event("f", name, edge.to_rank);
    to.add("cat", JsonValue("message"));
    to.add("id", JsonValue(static_cast<std::int64_t>(number)));
    to.add("ts", microseconds(consumed_ns));
    to.add("bp", JsonValue("e"));
    add(std::move(to));
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
      JsonValue sample = event("C", counter, rank);
      sample.add("ts", microseconds(ns));
      JsonValue arguments{JsonObject()};
      arguments.add(unit, JsonValue(held));
      sample.add("args", std::move(arguments));
      add(std::move(sample));
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
  std::string text_;
  bool first_ = true;
};

}  // namespace

Result<std::string> timeline(const Case& given, const SimulationResult& result) {
  const Result<std::unique_ptr<const PreparedCase>> prepared = PreparedCase::create(given);
  if (!prepared.ok()) return prepared.error();
  return TimelineWriter(**prepared, result).write();
}

}  // namespace rrfp
