#include <span>

#include "traces/atomic_file.h"
#include "traces/case_file.h"
#include "traces/case_words.h"
#include "traces/pipeline_file.h"
#include "traces/policy_file.h"

namespace rrfp {

JsonValue pipeline_to_json(const Program& program) {
  JsonValue out{JsonObject()};
  out.add("ranks", JsonValue(program.ranks()));
  out.add("microbatches", JsonValue(program.microbatches()));
  out.add("split_backward", JsonValue(program.split_backward()));
  out.add("ordered_accumulation", JsonValue(program.ordered_accumulation()));
  out.add("stages", stages_to_json(program.spec().stages));
  return out;
}

namespace {

// [rows][columns]; `list` may be longer.
JsonValue table(std::span<const std::int64_t> list, std::size_t rows, std::size_t columns) {
  JsonArray items;
  for (std::size_t row = 0; row < rows; ++row) {
    items.push_back(json_integers(list.subspan(row * columns, columns)));
  }
  return JsonValue(std::move(items));
}

void add_unless(JsonValue& out, std::string_view key, std::int64_t value, std::int64_t absent) {
  if (value != absent) out.add(key, JsonValue(value));
}

JsonValue tasks_to_json(const std::vector<std::int64_t>& by_task, const Program& program,
                        std::span<const SlotKey> keys) {
  const auto columns = static_cast<std::size_t>(program.microbatches());
  JsonValue out{JsonObject()};
  for (const SlotKey& key : keys) {
    JsonArray rows;
    for (int stage = 0; stage < program.stages(); ++stage) {
      const auto first = static_cast<std::size_t>(program.task_id(stage, key.slot, 0));
      rows.push_back(json_integers(std::span(by_task).subspan(first, columns)));
    }
    out.add(key.key, JsonValue(std::move(rows)));
  }
  return out;
}

JsonValue tensor_parallel_to_json(const TensorParallel& group) {
  JsonValue out{JsonObject()};
  out.add("lanes", JsonValue(group.lanes));
  out.add("coordination", JsonValue(to_word(kCoordinations, group.coordination)));
  out.add("vote_ns", JsonValue(group.vote_ns));
  out.add("announce_ns", JsonValue(group.announce_ns));
  return out;
}

JsonValue messages_to_json(const std::vector<std::vector<std::int64_t>>& by_edge,
                           const Program& program) {
  const auto columns = static_cast<std::size_t>(program.microbatches());
  JsonArray list;
  for (std::size_t id = 0; id < by_edge.size(); ++id) {
    const std::vector<std::int64_t>& ns = by_edge[id];
    if (ns.empty()) continue;
    const Edge& edge = program.edges()[id];
    JsonValue entry{JsonObject()};
    entry.add("kind", JsonValue(to_word(kMessageKinds, edge.kind)));
    entry.add("from", JsonValue(edge.from));
    entry.add("to", JsonValue(edge.to));
    entry.add("ns",
              ns.size() == columns ? json_integers(ns) : table(ns, ns.size() / columns, columns));
    list.push_back(std::move(entry));
  }
  return JsonValue(std::move(list));
}

JsonValue network_to_json(const Network& network, const Program& program) {
  JsonValue out{JsonObject()};
  out.add("mode", JsonValue(to_word(kModes, network.mode)));
  add_unless(out, "bytes_per_second", network.bytes_per_second, 0);
  add_unless(out, "notice_ns", network.notice_ns, 0);
  add_unless(out, "message_ns", network.message_ns, 0);
  if (!network.message_bytes.empty()) {
    out.add("message_bytes", tasks_to_json(network.message_bytes, program, kWholeKeys));
  }
  if (!network.latency_ns.empty()) {
    out.add("latency_ns", messages_to_json(network.latency_ns, program));
  }
  if (!network.expected_latency_ns.empty()) {
    out.add("expected_latency_ns", messages_to_json(network.expected_latency_ns, program));
  }
  if (!network.link_delays.empty()) {
    out.add("link_delay_ns", link_delays_to_json(network.link_delays, "ns"));
  }
  return out;
}

JsonValue memory_to_json(const Memory& memory, const Program& program) {
  const auto stages = static_cast<std::size_t>(program.stages());
  const auto columns = static_cast<std::size_t>(program.microbatches());
  JsonValue out{JsonObject()};
  if (!memory.activation_bytes.empty()) {
    out.add("activation_bytes", table(memory.activation_bytes, stages, columns));
  }
  if (!memory.weight_stash_bytes.empty()) {
    out.add("weight_stash_bytes", table(memory.weight_stash_bytes, stages, columns));
  }
  if (!memory.budget_bytes.empty()) {
    JsonArray list;
    for (const std::optional<std::int64_t>& budget : memory.budget_bytes) {
      list.push_back(budget ? JsonValue(*budget) : JsonValue());
    }
    out.add("budget_bytes", JsonValue(std::move(list)));
  }
  return out;
}

}  // namespace

JsonValue case_to_json(const Case& given) {
  const Program& program = given.program;
  const std::span<const SlotKey> keys = duration_keys(program.split_backward());
  JsonValue out{JsonObject()};
  out.add("schema", JsonValue(kCaseSchema));
  if (!given.name.empty()) out.add("name", JsonValue(given.name));
  out.add("pipeline", pipeline_to_json(program));
  out.add("durations_ns", tasks_to_json(given.duration_ns, program, keys));
  if (!given.input_ready_ns.empty()) out.add("input_ready_ns", json_integers(given.input_ready_ns));
  add_unless(out, "dispatch_ns", given.dispatch_ns, 0);
  add_unless(out, "queue_depth", given.queue_depth, 1);
  if (given.tensor_parallel != TensorParallel()) {
    out.add("tensor_parallel", tensor_parallel_to_json(given.tensor_parallel));
  }
  if (!given.expected_ns.empty()) {
    out.add("expected_ns", tasks_to_json(given.expected_ns, program, keys));
  }
  out.add("network", network_to_json(given.network, program));
  out.add("memory", memory_to_json(given.memory, program));
  out.add("policy", policy_to_json(given.policy));
  return out;
}

Result<void> write_case_file(const std::string& path, const Case& given, JsonLayout layout) {
  return write_file_atomically(path, to_text(case_to_json(given), layout) + "\n");
}

}  // namespace rrfp
