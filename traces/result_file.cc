#include "traces/result_file.h"

#include <array>
#include <span>

#include "traces/atomic_file.h"
#include "traces/json_cursor.h"

namespace rrfp {

namespace {

constexpr int kMostMicrobatches = std::numeric_limits<int>::max();

JsonValue tasks(std::span<const Task> list) {
  JsonArray items;
  items.reserve(list.size());
  for (const Task& task : list) items.emplace_back(to_string(task));
  return JsonValue(std::move(items));
}

JsonValue idle_to_json(const IdleTimes& idle_ns) {
  JsonValue out{JsonObject()};
  for (std::size_t i = 0; i < idle_ns.size(); ++i) {
    const auto cause = static_cast<IdleCause>(i);
    if (cause == IdleCause::kCommunication) continue;  // told with kRendezvous
    std::int64_t ns = idle_ns[i];
    if (cause == IdleCause::kRendezvous) {
      ns += idle_ns[static_cast<std::size_t>(IdleCause::kCommunication)];
    }
    if (ns != 0) out.add(name(cause), JsonValue(ns));
  }
  return out;
}

JsonValue rank_to_json(const RankResult& rank) {
  JsonValue out{JsonObject()};
  out.add("order", tasks(rank.order));
  out.add("start_ns", json_integers(rank.start_ns));
  out.add("end_ns", json_integers(rank.end_ns));
  out.add("busy_ns", JsonValue(rank.busy_ns));
  out.add("peak_bytes", JsonValue(rank.peak_bytes));
  out.add("peak_inbox_bytes", JsonValue(rank.peak_inbox_bytes));
  out.add("idle_ns", idle_to_json(rank.idle_ns));
  return out;
}

Task read_task(const JsonCursor& in) {
  const std::string text = in.string();
  if (!in.ok()) return {};
  const Result<Task> task = parse_task(text);
  if (task.ok()) return *task;
  in.expected("a task such as \"3F0\": stage, one of F, B, I, W, microbatch");
  return {};
}

IdleTimes read_idle(const JsonCursor& in) {
  constexpr std::array<std::string_view, kIdleCauses - 1> kKeys = {
      "drain",  "fill",          "dispatch", "anticipation", "order",
      "memory", "communication", "input",    "upstream"};
  in.only_keys(kKeys);
  IdleTimes idle_ns{};
  for (std::size_t i = 0; i < idle_ns.size(); ++i) {
    const auto cause = static_cast<IdleCause>(i);
    // One key for two causes; it says nothing about which.
    if (cause == IdleCause::kRendezvous) continue;
    idle_ns[i] = in.integer_or(name(cause), 0);
  }
  return idle_ns;
}

RankResult read_rank(const JsonCursor& in) {
  in.only_keys(
      {"order", "start_ns", "end_ns", "busy_ns", "peak_bytes", "peak_inbox_bytes", "idle_ns"});
  RankResult rank;
  for (const JsonCursor& cell : in.at("order").items()) rank.order.push_back(read_task(cell));
  in.at("start_ns").append_integers(rank.start_ns, rank.order.size(), "task of the order");
  in.at("end_ns").append_integers(rank.end_ns, rank.order.size(), "task of the order");
  rank.busy_ns = in.integer_or("busy_ns", 0);
  rank.peak_bytes = in.integer_or("peak_bytes", 0);
  rank.peak_inbox_bytes = in.integer_or("peak_inbox_bytes", 0);
  if (const auto idle = in.find("idle_ns")) rank.idle_ns = read_idle(*idle);
  return rank;
}

}  // namespace

JsonValue result_to_json(const SimulationResult& result) {
  JsonValue out{JsonObject()};
  out.add("schema", JsonValue(kResultSchema));
  out.add("completed", JsonValue(result.completed));
  out.add("makespan_ns", JsonValue(result.makespan_ns));
  if (!result.completed) out.add("blocked", tasks(result.blocked));
  if (!result.arrangement.empty()) {
    JsonArray given;
    for (const int index : result.arrangement) given.emplace_back(index);
    out.add("arrangement", JsonValue(std::move(given)));
  }
  JsonArray ranks;
  for (const RankResult& rank : result.ranks) ranks.push_back(rank_to_json(rank));
  out.add("ranks", JsonValue(std::move(ranks)));
  return out;
}

Result<void> write_result_file(const std::string& path, const SimulationResult& result,
                               JsonLayout layout) {
  return write_file_atomically(path, to_text(result_to_json(result), layout) + "\n");
}

Result<SimulationResult> read_result(const JsonDocument& document) {
  JsonErrors errors(document.file);
  const JsonCursor in(errors, document.root);
  // Which calibration the case was given is for people.
  in.only_keys(
      {"schema", "completed", "makespan_ns", "blocked", "arrangement", "ranks", "calibration"});
  in.at("schema").choice({Choice<int>{kResultSchema, 0}});
  SimulationResult result;
  result.completed = in.at("completed").boolean();
  result.makespan_ns = in.at("makespan_ns").integer();
  if (const auto list = in.find("blocked")) {
    for (const JsonCursor& cell : list->items()) result.blocked.push_back(read_task(cell));
  }
  if (const auto list = in.find("arrangement")) {
    for (const JsonCursor& index : list->items()) {
      result.arrangement.push_back(index.small_integer(0, kMostMicrobatches));
    }
  }
  for (const JsonCursor& rank : in.at("ranks").items()) result.ranks.push_back(read_rank(rank));
  if (!errors.ok()) return errors.status().error();
  return result;
}

Result<SimulationResult> read_result_file(const std::string& path, const JsonOptions& options) {
  const Result<JsonDocument> document = read_json_file(path, options);
  if (!document.ok()) return document.error();
  return read_result(*document);
}

}  // namespace rrfp
