#include "traces/prepared_case.h"

#include <algorithm>
#include <numeric>

#include "scheduler_core/arrangement.h"
#include "scheduler_core/arrival_vote.h"
#include "scheduler_core/schedule_check.h"
#include "traces/case_file.h"

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

Result<std::unique_ptr<const PreparedCase>> PreparedCase::create(const Case& input,
                                                                 const SharedParts& shared) {
  if (Result<void> checked = check_limits(input); !checked.ok()) return checked.error();
  auto [moved, given] = arranged(input);
  std::unique_ptr<PreparedCase> prepared(new PreparedCase(std::move(moved), std::move(given)));
  if (Result<void> done = prepared->prepare(shared); !done.ok()) return done.error();
  return std::unique_ptr<const PreparedCase>(std::move(prepared));
}

PreparedCase::PreparedCase(Case input, std::vector<int> arrangement)
    : case_(std::move(input)), arrangement_(std::move(arrangement)) {}

Result<void> PreparedCase::prepare(const SharedParts& shared) {
  const bool same = shared.like != nullptr && same_messages(shared.like->case_, case_);
  messages_ = same ? shared.like->messages_
                   : std::make_shared<const MessageTables>(build_message_tables(case_));
  vote_ns_ = rrfp::vote_ns(case_);
  const TensorParallel& group = case_.tensor_parallel;
  const bool agrees = group.lanes > 1 && case_.network.mode == NetworkMode::kEager;
  start_delay_ns_ = case_.dispatch_ns + (agrees ? group.announce_ns : 0);
  build_root_inputs();

  fitted_ = shared.schedule;
  if (fitted_ == nullptr) {
    Result<std::shared_ptr<const FittedSchedule>> made = fitted_schedule();
    if (!made.ok()) return made.error();
    fitted_ = *std::move(made);
  }
  RRFP_CHECK(program().spec() == case_.program.spec());

  duration_ns_ = with_fused(case_.duration_ns);
  expected_ns_ = with_fused(case_.expected_ns.empty() ? case_.duration_ns : case_.expected_ns);
  const Result<int> depth = fitting_depth(program(), case_.queue_depth);
  if (!depth.ok()) return depth.error();
  case_.queue_depth = *depth;
  return check_budgets(program(), case_.memory.activation_bytes, case_.memory.budget_bytes);
}

Result<std::shared_ptr<const FittedSchedule>> PreparedCase::fitted_schedule() const {
  const std::vector<std::int64_t> mean_transfer_ns =
      row_means(expected_transfer_ns(), case_.program.microbatches());
  ScheduleContext context;
  context.expected_ns = case_.expected_ns.empty() ? case_.duration_ns : case_.expected_ns;
  context.expected_transfer_ns = mean_transfer_ns;
  Result<FittedSchedule> made = make_fitted_schedule(case_.policy.hint, case_.program, context);
  if (!made.ok()) return made.error();
  return std::make_shared<const FittedSchedule>(*std::move(made));
}

std::vector<std::int64_t> PreparedCase::with_fused(const std::vector<std::int64_t>& by_task) const {
  const Program& own = program();
  std::vector<std::int64_t> whole = by_task;
  for (int stage = 0; stage < own.stages(); ++stage) {
    for (int m = 0; m < own.microbatches(); ++m) {
      if (!own.fused(stage, m) || own.backward_of(stage) != Backward::kFull) continue;
      whole[static_cast<std::size_t>(own.task_id(stage, Slot::kBackward, m))] +=
          by_task[static_cast<std::size_t>(own.task_id(stage, Slot::kWeight, m))];
    }
  }
  return whole;
}

std::int64_t PreparedCase::mean_expected_ns(TaskId task) const {
  const Program& own = program();
  const TaskId first = task - own.microbatch_of(task);
  std::int64_t sum_ns = 0;
  std::int64_t count = 0;
  for (TaskId id = first; id < first + own.microbatches(); ++id) {
    if (!own.exists(id)) continue;
    sum_ns += expected_ns_[static_cast<std::size_t>(id)];
    ++count;
  }
  return sum_ns / std::max<std::int64_t>(count, 1);
}

void PreparedCase::build_root_inputs() {
  const Program& given = case_.program;
  const std::vector<std::int64_t>& ready_ns = case_.input_ready_ns;
  root_inputs_.resize(static_cast<std::size_t>(given.ranks()));
  for (int stage = 0; stage < given.stages(); ++stage) {
    if (!given.predecessors(stage).empty()) continue;
    std::vector<RootInput>& of_rank = root_inputs_[static_cast<std::size_t>(given.rank_of(stage))];
    for (int m = 0; m < given.microbatches(); ++m) {
      of_rank.push_back({ready_ns.empty() ? 0 : ready_ns[static_cast<std::size_t>(m)],
                         given.task_id(stage, Slot::kForward, m)});
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
  config.expected_transfer_ns = expected_transfer_ns();
  return config;
}

bool same_for_schedulers(const PreparedCase& a, const PreparedCase& b) {
  return a.program().spec() == b.program().spec() && a.schedule() == b.schedule() &&
         a.expected_ns() == b.expected_ns() &&
         a.expected_transfer_ns() == b.expected_transfer_ns() &&
         a.start_delay_ns() == b.start_delay_ns() && a.input().memory == b.input().memory &&
         a.input().queue_depth == b.input().queue_depth &&
         a.input().tensor_parallel == b.input().tensor_parallel &&
         a.input().network.mode == b.input().network.mode &&
         a.input().policy.window == b.input().policy.window &&
         a.input().policy.anticipation == b.input().policy.anticipation;
}

}  // namespace rrfp
