#include "tests/model/shrink.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace rrfp::model {

namespace {

using Rows = std::vector<std::int64_t>;
using Fails = std::function<bool(const Case&)>;

// Cuts every row of `before` numbers to `after`.
void cut_rows(Rows& rows, int before, int after) {
  Rows cut;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<int>(i % static_cast<std::size_t>(before)) < after) cut.push_back(rows[i]);
  }
  rows = std::move(cut);
}

std::vector<Rows*> rows_of(Case& given) {
  std::vector<Rows*> all = {&given.duration_ns,
                            &given.expected_ns,
                            &given.input_ready_ns,
                            &given.network.message_bytes,
                            &given.memory.activation_bytes,
                            &given.memory.weight_stash_bytes};
  for (Rows& rows : given.network.latency_ns) all.push_back(&rows);
  for (Rows& rows : given.network.expected_latency_ns) all.push_back(&rows);
  return all;
}

template <typename Keep>
void filter_order(Case& given, const Keep& keep) {
  for (std::vector<Task>& order : given.policy.hint.order) {
    std::erase_if(order, [&](const Task& task) { return !keep(task); });
  }
}

std::optional<Case> without_last_microbatch(Case given) {
  ProgramSpec spec = given.program.spec();
  const int before = spec.microbatches--;
  Result<Program> program = Program::create(spec);
  if (!program.ok()) return std::nullopt;
  for (Rows* rows : rows_of(given)) cut_rows(*rows, before, before - 1);
  filter_order(given, [&](const Task& task) { return task.microbatch < before - 1; });
  given.program = *std::move(program);
  return given;
}

std::optional<Case> without_last_stage(Case given) {
  const Program old = given.program;
  ProgramSpec spec = old.spec();
  spec.stages.pop_back();
  Result<Program> program = Program::create(spec);
  if (!program.ok()) return std::nullopt;
  const auto move_edges = [&](std::vector<Rows>& by_edge) {
    if (by_edge.empty()) return;
    std::vector<Rows> moved;
    for (const Edge& edge : program->edges()) {
      const EdgeId id = old.find_edge(edge.kind, edge.from, edge.to);
      moved.push_back(by_edge[static_cast<std::size_t>(id)]);
    }
    by_edge = std::move(moved);
  };
  move_edges(given.network.latency_ns);
  move_edges(given.network.expected_latency_ns);
  const auto tasks = static_cast<std::size_t>(program->task_ids());
  for (Rows* rows : {&given.duration_ns, &given.expected_ns, &given.network.message_bytes}) {
    if (!rows->empty()) rows->resize(tasks);
  }
  for (Rows* rows : {&given.memory.activation_bytes, &given.memory.weight_stash_bytes}) {
    if (!rows->empty()) rows->resize(tasks / kSlots);
  }
  filter_order(given, [&](const Task& task) { return task.stage < program->stages(); });
  given.program = *std::move(program);
  return given;
}

std::optional<Case> without_last_rank(Case given) {
  ProgramSpec spec = given.program.spec();
  --spec.ranks;
  Result<Program> program = Program::create(spec);
  if (!program.ok()) return std::nullopt;
  if (!given.policy.hint.order.empty()) given.policy.hint.order.pop_back();
  if (!given.memory.budget_bytes.empty()) given.memory.budget_bytes.pop_back();
  given.program = *std::move(program);
  return given;
}

// Whole features, one at a time.
std::vector<Case> plainer(const Case& given) {
  std::vector<Case> all;
  const auto with = [&](const auto& change) {
    Case copy = given;
    change(copy);
    all.push_back(std::move(copy));
  };
  with([](Case& c) { c.policy.anticipation.reset(); });
  with([](Case& c) { c.policy.arrangement = Arrangement::kGiven; });
  with([](Case& c) { c.policy.window = kNoWindow; });
  with([](Case& c) { c.policy.hint = HintSpec{}; });
  with([](Case& c) { c.expected_ns.clear(); });
  with([](Case& c) { c.input_ready_ns.clear(); });
  with([](Case& c) { c.dispatch_ns = 0; });
  with([](Case& c) { c.queue_depth = 1; });
  with([](Case& c) {
    const int microbatches = c.program.microbatches();
    for (Rows& rows : c.network.latency_ns) {
      if (!rows.empty()) rows.resize(static_cast<std::size_t>(microbatches));
    }
    c.tensor_parallel = {};
  });
  with([](Case& c) { c.tensor_parallel.vote_ns = 0; });
  with([](Case& c) { c.tensor_parallel.announce_ns = 0; });
  with([](Case& c) { c.network.bytes_per_second = 0; });
  with([](Case& c) { c.network.notice_ns = 0; });
  with([](Case& c) { c.network.message_bytes.clear(); });
  with([](Case& c) { c.network.latency_ns.clear(); });
  with([](Case& c) { c.network.expected_latency_ns.clear(); });
  with([](Case& c) { c.memory = {}; });
  with([](Case& c) { c.memory.budget_bytes.clear(); });
  with([](Case& c) { c.memory.weight_stash_bytes.clear(); });
  return all;
}

// A measure that every accepted step lowers, so that the search ends.
std::int64_t size_of(Case& given) {
  std::int64_t size = given.program.task_ids() * 1000 + given.program.ranks() * 100;
  for (const Rows* rows : rows_of(given)) {
    size += rows->empty() ? 0 : 1;
    size += static_cast<std::int64_t>(rows->size()) -
            std::count(rows->begin(), rows->end(), std::int64_t{0});
  }
  const TensorParallel& tensor = given.tensor_parallel;
  const bool features[] = {given.policy.anticipation.has_value(),
                           given.policy.arrangement != Arrangement::kGiven,
                           given.policy.window != kNoWindow,
                           !given.policy.hint.order.empty() || given.policy.hint.name != "bf",
                           given.dispatch_ns != 0,
                           given.queue_depth != 1,
                           tensor.lanes != 1,
                           tensor.vote_ns != 0,
                           tensor.announce_ns != 0,
                           given.network.bytes_per_second != 0,
                           given.network.notice_ns != 0,
                           !given.memory.budget_bytes.empty()};
  return size + std::count(std::begin(features), std::end(features), true);
}

bool take_if_smaller(Case& best, std::optional<Case> candidate, const Fails& fails) {
  if (!candidate || size_of(*candidate) >= size_of(best) || !fails(*candidate)) return false;
  best = *std::move(candidate);
  return true;
}

bool zero_numbers(Case& best, const Fails& fails) {
  bool progress = false;
  for (std::size_t list = 0; list < rows_of(best).size(); ++list) {
    for (std::size_t i = 0; i < rows_of(best)[list]->size(); ++i) {
      Case candidate = best;
      (*rows_of(candidate)[list])[i] = 0;
      progress |= take_if_smaller(best, std::move(candidate), fails);
    }
  }
  return progress;
}

}  // namespace

Case shrink(Case given, const Fails& fails) {
  bool progress = true;
  while (progress) {
    progress = false;
    while (take_if_smaller(given, without_last_stage(given), fails) ||
           take_if_smaller(given, without_last_microbatch(given), fails) ||
           take_if_smaller(given, without_last_rank(given), fails)) {
      progress = true;
    }
    for (std::size_t i = 0; i < plainer(given).size(); ++i) {
      progress |= take_if_smaller(given, plainer(given)[i], fails);
    }
    progress |= zero_numbers(given, fails);
  }
  given.name += "-small";
  return given;
}

}  // namespace rrfp::model
