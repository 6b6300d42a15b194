#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "scheduler_core/arrival_vote.h"
#include "traces/case_file.h"
#include "traces/case_words.h"
#include "traces/json_cursor.h"
#include "traces/pipeline_file.h"
#include "traces/policy_file.h"

namespace rrfp {

ProgramSpec read_pipeline(const JsonCursor& in) {
  in.only_keys({"ranks", "microbatches", "split_backward", "ordered_accumulation", "stages"});
  ProgramSpec spec;
  spec.ranks = in.at("ranks").small_integer(1, kMostRanks);
  spec.microbatches = in.at("microbatches").small_integer(1, std::numeric_limits<int>::max());
  spec.split_backward = in.boolean_or("split_backward", false);
  spec.ordered_accumulation = in.boolean_or("ordered_accumulation", false);
  spec.stages = read_stages(in.at("stages"), spec.ranks);
  return spec;
}

namespace {

constexpr std::int64_t kMostLatencies = std::int64_t{1} << 27;

// A table by TaskId from one table [stage][microbatch] per key.
std::vector<std::int64_t> read_tasks(const JsonCursor& in, const Program& program,
                                     std::span<const SlotKey> keys, bool all_needed) {
  std::vector<std::string_view> words;
  for (const SlotKey& key : keys) words.push_back(key.key);
  in.only_keys(words);
  std::vector<std::int64_t> by_task;
  const auto stages = static_cast<std::size_t>(program.stages());
  const auto columns = static_cast<std::size_t>(program.microbatches());
  for (const SlotKey& key : keys) {
    const std::optional<JsonCursor> table = all_needed ? in.at(key.key) : in.find(key.key);
    if (!table) continue;
    const std::vector<std::int64_t> rows = table->table(stages, "stage", columns, "microbatch");
    if (!in.ok()) return {};
    by_task.resize(static_cast<std::size_t>(program.task_ids()));
    for (std::size_t stage = 0; stage < stages; ++stage) {
      const TaskId first = program.task_id(static_cast<int>(stage), key.slot, 0);
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(stage * columns), columns,
                  by_task.begin() + first);
    }
  }
  return by_task;
}

TensorParallel read_tensor_parallel(const JsonCursor& in) {
  in.only_keys({"lanes", "coordination", "vote_ns", "announce_ns"});
  TensorParallel group;
  group.lanes = static_cast<int>(in.integer_or("lanes", 1, {1, ArrivalVote::kMostLanes}));
  if (const auto word = in.find("coordination")) group.coordination = word->choice(kCoordinations);
  group.vote_ns = in.integer_or("vote_ns", 0);
  group.announce_ns = in.integer_or("announce_ns", 0);
  return group;
}

/// Finds the edge that an entry with kind, from and to names.
class EdgeFinder {
 public:
  explicit EdgeFinder(const Program& program) : program_(program) {
    edges_.reserve(program.edges().size());
    for (std::size_t id = 0; id < program.edges().size(); ++id) {
      const Edge& edge = program.edges()[id];
      edges_.emplace_back(Key{edge.kind, edge.from, edge.to}, static_cast<EdgeId>(id));
    }
    std::sort(edges_.begin(), edges_.end());
  }

  /// -1 after an error.
  EdgeId read(const JsonCursor& entry) const {
    entry.only_keys({"kind", "from", "to", "ns"});
    const Kind kind = entry.at("kind").choice(kMessageKinds);
    const int last = program_.stages() - 1;
    const int from = entry.at("from").small_integer(0, last);
    const int to = entry.at("to").small_integer(0, last);
    if (!entry.ok()) return -1;
    const std::pair<Key, EdgeId> wanted(Key{kind, from, to}, 0);
    const auto found = std::lower_bound(edges_.begin(), edges_.end(), wanted);
    if (found != edges_.end() && found->first == wanted.first) return found->second;
    const bool forward = kind == Kind::kForward;
    entry.fail("found " + std::string(forward ? "an activation" : "a gradient") + " from stage " +
               std::to_string(from) + " to stage " + std::to_string(to) +
               "; expected an edge of the stage graph" +
               (forward ? "" : ", where \"from\" is the stage that sends the gradient"));
    return -1;
  }

 private:
  using Key = std::tuple<Kind, int, int>;

  const Program& program_;
  std::vector<std::pair<Key, EdgeId>> edges_;
};

// By EdgeId; an entry is one number per microbatch, which all lanes share, or
// (where `lanes` > 0) one such list per lane.
std::vector<std::vector<std::int64_t>> read_messages(const JsonCursor& in, const Program& program,
                                                     const EdgeFinder& edges, int lanes) {
  std::vector<std::vector<std::int64_t>> by_edge;
  const auto columns = static_cast<std::size_t>(program.microbatches());
  std::int64_t total = 0;
  for (const JsonCursor& entry : in.items()) {
    const EdgeId edge = edges.read(entry);
    if (edge < 0) return {};
    by_edge.resize(program.edges().size());
    std::vector<std::int64_t>& ns = by_edge[static_cast<std::size_t>(edge)];
    if (!ns.empty()) entry.fail("this edge has an entry already; each may have one");
    total += std::int64_t{std::max(lanes, 1)} * program.microbatches();
    if (total > kMostLatencies) entry.fail("lanes times microbatches times edges is too large");
    const JsonCursor list = entry.at("ns");
    const JsonArray* items = list.value().array();
    if (!in.ok()) return {};
    if (lanes > 0 && items != nullptr && !items->empty() && items->front().array() != nullptr) {
      ns = list.table(static_cast<std::size_t>(lanes), "lane", columns, "microbatch");
    } else {
      for (int lane = 0; lane < std::max(lanes, 1) && in.ok(); ++lane) {
        list.append_integers(ns, columns, "microbatch");
      }
    }
    if (!in.ok()) return {};
  }
  return by_edge;
}

std::vector<LinkDelay> read_link_delays(const JsonCursor& in, int ranks) {
  std::vector<LinkDelay> delays;
  std::set<std::pair<int, int>> seen;
  for (const JsonCursor& entry : in.items()) {
    entry.only_keys({"from", "to", "ns"});
    LinkDelay delay;
    delay.from_rank = entry.at("from").small_integer(0, ranks - 1);
    delay.to_rank = entry.at("to").small_integer(0, ranks - 1);
    delay.ns = entry.at("ns").integer();
    if (!in.ok()) break;
    if (delay.from_rank == delay.to_rank) entry.fail("a link joins two different ranks");
    if (!seen.emplace(delay.from_rank, delay.to_rank).second) {
      entry.fail("this link has an entry already; each may have one");
    }
    delays.push_back(delay);
  }
  return delays;
}

Network read_network(const JsonCursor& in, const Program& program, int lanes) {
  in.only_keys({"mode", "bytes_per_second", "notice_ns", "expected_latency_ns", "message_bytes",
                "latency_ns", "message_ns", "link_delay_ns"});
  Network network;
  if (const auto mode = in.find("mode")) network.mode = mode->choice(kModes);
  network.bytes_per_second = in.integer_or("bytes_per_second", 0);
  network.notice_ns = in.integer_or("notice_ns", 0);
  network.message_ns = in.integer_or("message_ns", 0);
  if (const auto bytes = in.find("message_bytes")) {
    network.message_bytes = read_tasks(*bytes, program, kWholeKeys, false);
  }
  const EdgeFinder edges(program);
  if (const auto list = in.find("latency_ns")) {
    network.latency_ns = read_messages(*list, program, edges, lanes);
  }
  if (const auto list = in.find("expected_latency_ns")) {
    network.expected_latency_ns = read_messages(*list, program, edges, 0);
  }
  if (const auto list = in.find("link_delay_ns")) {
    network.link_delays = read_link_delays(*list, program.ranks());
  }
  return network;
}

Memory read_memory(const JsonCursor& in, const Program& program) {
  in.only_keys({"activation_bytes", "weight_stash_bytes", "budget_bytes"});
  const auto stages = static_cast<std::size_t>(program.stages());
  const auto columns = static_cast<std::size_t>(program.microbatches());
  Memory memory;
  if (const auto table = in.find("activation_bytes")) {
    memory.activation_bytes = table->table(stages, "stage", columns, "microbatch");
  }
  if (const auto table = in.find("weight_stash_bytes")) {
    memory.weight_stash_bytes = table->table(stages, "stage", columns, "microbatch");
    for (std::size_t i = 0; i < memory.weight_stash_bytes.size() && in.ok(); ++i) {
      const std::int64_t held = memory.activation_bytes.empty() ? 0 : memory.activation_bytes[i];
      if (memory.weight_stash_bytes[i] <= held) continue;
      in.fail("weight_stash_bytes of stage " + std::to_string(i / columns) + ", microbatch " +
              std::to_string(i % columns) + " is " + std::to_string(memory.weight_stash_bytes[i]) +
              "; at most its activation_bytes, " + std::to_string(held));
    }
  }
  if (const auto list = in.find("budget_bytes")) {
    for (const JsonCursor& entry : list->items(static_cast<std::size_t>(program.ranks()), "rank")) {
      memory.budget_bytes.push_back(entry.value().is_null() ? std::optional<std::int64_t>()
                                                            : entry.integer());
    }
  }
  return memory;
}

}  // namespace

Result<Case> read_case(const JsonDocument& document) {
  JsonErrors errors(document.file);
  const JsonCursor in(errors, document.root);
  in.only_keys({"schema", "name", "pipeline", "durations_ns", "input_ready_ns", "dispatch_ns",
                "queue_depth", "tensor_parallel", "expected_ns", "network", "memory", "policy"});
  in.at("schema").choice({Choice<int>{kCaseSchema, 0}});
  ProgramSpec spec = read_pipeline(in.at("pipeline"));
  if (!errors.ok()) return errors.status().error();
  Result<Program> program = Program::create(std::move(spec));
  if (!program.ok()) {
    in.at("pipeline").fail(program.error().message);
    return errors.status().error();
  }

  Case out{.name = in.string_or("name", ""), .program = *std::move(program)};
  const std::span<const SlotKey> keys = duration_keys(out.program.split_backward());
  out.duration_ns = read_tasks(in.at("durations_ns"), out.program, keys, true);
  if (const auto table = in.find("expected_ns")) {
    out.expected_ns = read_tasks(*table, out.program, keys, true);
  }
  if (const auto list = in.find("input_ready_ns")) {
    list->append_integers(out.input_ready_ns, static_cast<std::size_t>(out.program.microbatches()),
                          "microbatch");
  }
  out.dispatch_ns = in.integer_or("dispatch_ns", 0);
  out.queue_depth =
      static_cast<int>(in.integer_or("queue_depth", 1, {1, std::numeric_limits<int>::max()}));
  if (const auto group = in.find("tensor_parallel")) {
    out.tensor_parallel = read_tensor_parallel(*group);
  }
  if (const auto network = in.find("network")) {
    out.network = read_network(*network, out.program, out.tensor_parallel.lanes);
  }
  if (const auto memory = in.find("memory")) out.memory = read_memory(*memory, out.program);
  if (const auto policy = in.find("policy")) {
    out.policy = read_policy(*policy, out.program.ranks());
  }
  if (!errors.ok()) return errors.status().error();
  if (Result<void> checked = check_magnitudes(out); !checked.ok()) {
    in.fail(checked.error().message);
    return errors.status().error();
  }
  return out;
}

Result<Case> read_case_file(const std::string& path, const JsonOptions& options) {
  const Result<JsonDocument> document = read_json_file(path, options);
  if (!document.ok()) return document.error();
  return read_case(*document);
}

}  // namespace rrfp
