#include "traces/prepared_case.h"

#include <algorithm>
#include <numeric>

#include "scheduler_core/arrangement.h"
#include "scheduler_core/arrival_vote.h"
#include "scheduler_core/schedule_check.h"
#include "traces/case_file.h"
#include "traces/transfer.h"

namespace rrfp {

namespace {

__extension__ using Wide = __int128;

// Of decided tasks, over all ranks.
constexpr std::int64_t kMostPlaces = std::int64_t{1} << 26;

// Moves the microbatches of an array whose rows have one entry each.
void permute_rows(std::vector<std::int64_t>& values, const std::vector<int>& given) {
  const std::size_t width = given.size();
  std::vector<std::int64_t> row(width);
  for (std::size_t first = 0; first < values.size(); first += width) {
    for (std::size_t m = 0; m < width; ++m) {
      row[m] = values[first + static_cast<std::size_t>(given[m])];
    }
    std::copy(row.begin(), row.end(), values.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

// The mean of each row of `width` values, rounded down.
std::vector<std::int64_t> row_means(const std::vector<std::int64_t>& values, int width) {
  std::vector<std::int64_t> means;
  for (std::size_t first = 0; first < values.size(); first += static_cast<std::size_t>(width)) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    means.push_back(
        static_cast<std::int64_t>(std::accumulate(begin, begin + width, Wide{0}) / width));
  }
  return means;
}

}  // namespace

std::pair<Case, std::vector<int>> arranged(const Case& input) {
  std::vector<int> given =
      arrange(input.policy.arrangement, input.program.microbatches(),
              input.expected_ns.empty() ? input.duration_ns : input.expected_ns);
  if (is_given_order(given)) return {input, {}};
  Case moved = input;
  for (std::vector<std::int64_t>* table :
       {&moved.duration_ns, &moved.expected_ns, &moved.input_ready_ns, &moved.network.message_bytes,
        &moved.memory.activation_bytes, &moved.memory.weight_stash_bytes}) {
    permute_rows(*table, given);
  }
  for (std::vector<std::int64_t>& table : moved.network.latency_ns) permute_rows(table, given);
  for (std::vector<std::int64_t>& table : moved.network.expected_latency_ns) {
    permute_rows(table, given);
  }
  return {std::move(moved), std::move(given)};
}

namespace {

// What a reader of files checks, for cases that come from elsewhere.
Result<void> check_limits(const Case& input) {
  const int lanes = input.tensor_parallel.lanes;
  if (lanes < 1 || lanes > ArrivalVote::kMostLanes) {
    return Error{"tensor_parallel lanes is " + std::to_string(lanes) + "; 1 to " +
                 std::to_string(ArrivalVote::kMostLanes)};
  }
  if (input.queue_depth < 1) {
    return Error{"queue_depth is " + std::to_string(input.queue_depth) + "; at least 1"};
  }
  return check_magnitudes(input);
}

// No rank holds more than all of its tasks, and engines make room for the depth.
Result<int> fitting_depth(const Program& program, int depth) {
  if (depth == 1) return depth;
  std::size_t most = 1;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    most = std::max(most, program.tasks_of_rank(rank).size());
  }
  const int fitting = std::min(depth, static_cast<int>(most));
  const std::int64_t places = std::int64_t{fitting} * program.ranks();
  if (places <= kMostPlaces) return fitting;
  return Error{"queue_depth times ranks is too large: " + std::to_string(places) + "; at most " +
               std::to_string(kMostPlaces)};
}

}  // namespace

Result<std::unique_ptr<const PreparedCase>> PreparedCase::create(const Case& input) {
  if (Result<void> checked = check_limits(input); !checked.ok()) return checked.error();
  auto [moved, given] = arranged(input);
  std::unique_ptr<PreparedCase> prepared(new PreparedCase(std::move(moved), std::move(given)));
  if (Result<void> done = prepared->prepare(); !done.ok()) return done.error();
  return std::unique_ptr<const PreparedCase>(std::move(prepared));
}

PreparedCase::PreparedCase(Case input, std::vector<int> arrangement)
    : case_(std::move(input)), arrangement_(std::move(arrangement)), program_(case_.program) {}

Result<void> PreparedCase::prepare() {
  const Program& given = case_.program;
  expected_ns_ = case_.expected_ns.empty() ? case_.duration_ns : case_.expected_ns;
  build_messages();
  build_root_inputs();

  const std::vector<std::int64_t> mean_transfer_ns =
      row_means(expected_transfer_ns_, given.microbatches());
  ScheduleContext context;
  context.hint = &case_.policy.hint;
  context.expected_ns = expected_ns_;
  context.expected_transfer_ns = mean_transfer_ns;
  Result<Schedule> schedule = make_schedule(case_.policy.hint, given, context);
  if (!schedule.ok()) return schedule.error();
  schedule_ = std::move(schedule).value();
  Result<Program> program = fit_program(given, schedule_);
  if (!program.ok()) return program.error();
  program_ = std::move(program).value();

  duration_ns_ = with_fused(case_.duration_ns);
  expected_ns_ = with_fused(expected_ns_);
  const Result<int> depth = fitting_depth(program_, case_.queue_depth);
  if (!depth.ok()) return depth.error();
  case_.queue_depth = *depth;
  return check_budgets(program_, case_.memory.activation_bytes, case_.memory.budget_bytes);
}

std::vector<std::int64_t> PreparedCase::with_fused(const std::vector<std::int64_t>& by_task) const {
  std::vector<std::int64_t> whole = by_task;
  for (int stage = 0; stage < program_.stages(); ++stage) {
    for (int m = 0; m < program_.microbatches(); ++m) {
      if (!program_.fused(stage, m) || program_.backward_of(stage) != Backward::kFull) continue;
      whole[static_cast<std::size_t>(program_.task_id(stage, Slot::kBackward, m))] +=
          by_task[static_cast<std::size_t>(program_.task_id(stage, Slot::kWeight, m))];
    }
  }
  return whole;
}

std::int64_t PreparedCase::mean_expected_ns(TaskId task) const {
  const TaskId first = task - program_.microbatch_of(task);
  std::int64_t sum_ns = 0;
  std::int64_t count = 0;
  for (TaskId id = first; id < first + program_.microbatches(); ++id) {
    if (!program_.exists(id)) continue;
    sum_ns += expected_ns_[static_cast<std::size_t>(id)];
    ++count;
  }
  return sum_ns / std::max<std::int64_t>(count, 1);
}

std::int64_t PreparedCase::lane_latency_ns(EdgeId edge, int lane, int microbatch) const {
  if (case_.network.latency_ns.empty()) return 0;
  const std::vector<std::int64_t>& table = case_.network.latency_ns[static_cast<std::size_t>(edge)];
  if (table.empty()) return 0;
  return table[static_cast<std::size_t>(lane * program_.microbatches() + microbatch)];
}

void PreparedCase::build_messages() {
  const Network& network = case_.network;
  const TensorParallel& group = case_.tensor_parallel;
  const bool agrees = group.lanes > 1 && network.mode == NetworkMode::kEager;
  if (agrees && group.coordination == Coordination::kVote) vote_ns_ = group.vote_ns;
  start_delay_ns_ = case_.dispatch_ns + (agrees ? group.announce_ns : 0);

  const int width = program_.microbatches();
  for (std::size_t id = 0; id < program_.edges().size(); ++id) {
    const Edge& edge = program_.edges()[id];
    const auto edge_id = static_cast<EdgeId>(id);
    const Slot slot = edge.slot();
    for (int m = 0; m < width; ++m) {
      const auto producer = static_cast<std::size_t>(program_.task_id(edge.from, slot, m));
      const std::int64_t bytes =
          network.message_bytes.empty() ? 0 : network.message_bytes[producer];
      const std::int64_t busy = transmission_ns(bytes, network.bytes_per_second);
      std::int64_t slowest = 0;
      std::int64_t of_group = 0;
      for (int lane = 0; lane < group.lanes; ++lane) {
        const std::int64_t latency = lane_latency_ns(edge_id, lane, m);
        slowest = std::max(slowest, latency);
        if (lane > 0 && leader_decides_alone()) continue;
        of_group = std::max(of_group, latency + (lane > 0 ? vote_ns_ : 0));
      }
      message_bytes_.push_back(bytes);
      busy_ns_.push_back(busy);
      slowest_latency_ns_.push_back(slowest);
      group_latency_ns_.push_back(of_group);
      const bool known =
          !network.expected_latency_ns.empty() && !network.expected_latency_ns[id].empty();
      expected_transfer_ns_.push_back(
          busy + (known ? network.expected_latency_ns[id][static_cast<std::size_t>(m)] : of_group));
    }
  }
}

void PreparedCase::build_root_inputs() {
  const std::vector<std::int64_t>& ready_ns = case_.input_ready_ns;
  root_inputs_.resize(static_cast<std::size_t>(program_.ranks()));
  for (int stage = 0; stage < program_.stages(); ++stage) {
    if (!program_.predecessors(stage).empty()) continue;
    std::vector<RootInput>& of_rank =
        root_inputs_[static_cast<std::size_t>(program_.rank_of(stage))];
    for (int m = 0; m < program_.microbatches(); ++m) {
      of_rank.push_back({ready_ns.empty() ? 0 : ready_ns[static_cast<std::size_t>(m)],
                         program_.task_id(stage, Slot::kForward, m)});
    }
  }
  for (std::vector<RootInput>& of_rank : root_inputs_) {
    std::stable_sort(of_rank.begin(), of_rank.end(),
                     [](const RootInput& a, const RootInput& b) { return a.time_ns < b.time_ns; });
  }
}

RankSchedulerConfig PreparedCase::scheduler_config(int rank) const {
  RankSchedulerConfig config;
  config.rank = rank;
  config.window = case_.policy.window;
  config.queue_depth = case_.queue_depth;
  config.anticipation = case_.policy.anticipation;
  config.memory = {case_.memory.activation_bytes, case_.memory.weight_stash_bytes};
  if (!case_.memory.budget_bytes.empty()) {
    config.budget_bytes = case_.memory.budget_bytes[static_cast<std::size_t>(rank)];
  }
  config.start_delay_ns = start_delay_ns_;
  config.expected_ns = expected_ns_;
  config.expected_transfer_ns = expected_transfer_ns_;
  return config;
}

bool same_for_schedulers(const PreparedCase& a, const PreparedCase& b) {
  const Program& p = a.program();
  const Program& q = b.program();
  if (p.ranks() != q.ranks() || p.stages() != q.stages() || p.microbatches() != q.microbatches() ||
      p.split_backward() != q.split_backward() ||
      p.ordered_accumulation() != q.ordered_accumulation()) {
    return false;
  }
  for (int stage = 0; stage < p.stages(); ++stage) {
    const StageSpec& of_p = p.spec().stages[static_cast<std::size_t>(stage)];
    const StageSpec& of_q = q.spec().stages[static_cast<std::size_t>(stage)];
    if (of_p.rank != of_q.rank || of_p.predecessors != of_q.predecessors ||
        of_p.backward != of_q.backward) {
      return false;
    }
  }
  return a.schedule() == b.schedule() && a.expected_ns() == b.expected_ns() &&
         a.expected_transfer_ns() == b.expected_transfer_ns() &&
         a.start_delay_ns() == b.start_delay_ns() && a.input().memory == b.input().memory &&
         a.input().queue_depth == b.input().queue_depth &&
         a.input().tensor_parallel == b.input().tensor_parallel &&
         a.input().network.mode == b.input().network.mode &&
         a.input().policy.window == b.input().policy.window &&
         a.input().policy.anticipation == b.input().policy.anticipation;
}

}  // namespace rrfp
