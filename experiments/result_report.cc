#include "experiments/result_report.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "experiments/display_units.h"
#include "experiments/text_list.h"
#include "experiments/text_table.h"
#include "traces/case_words.h"

namespace rrfp {

namespace {

// What is told of one rank, or of all of them.
struct Row {
  std::string label;
  std::int64_t tasks = 0;
  std::int64_t busy_ns = 0;
  IdleTimes idle_ns{};  // the two kinds of communication as one
  std::int64_t peak_bytes = 0;
  std::int64_t peak_inbox_bytes = 0;

  std::int64_t total_idle_ns() const {
    return std::accumulate(idle_ns.begin(), idle_ns.end(), std::int64_t{0});
  }
};

constexpr auto index(IdleCause cause) { return static_cast<std::size_t>(cause); }

Row row_of(const RankResult& rank, std::size_t number) {
  Row row{std::to_string(number), static_cast<std::int64_t>(rank.order.size()),
          rank.busy_ns,           rank.idle_ns,
          rank.peak_bytes,        rank.peak_inbox_bytes};
  row.idle_ns[index(IdleCause::kCommunication)] +=
      std::exchange(row.idle_ns[index(IdleCause::kRendezvous)], 0);
  return row;
}

// Sums of times, and the largest of the peaks.
Row all_of(const std::vector<Row>& rows) {
  Row all;
  all.label = "all";
  for (const Row& row : rows) {
    all.tasks += row.tasks;
    all.busy_ns += row.busy_ns;
    for (std::size_t i = 0; i < row.idle_ns.size(); ++i) all.idle_ns[i] += row.idle_ns[i];
    all.peak_bytes = std::max(all.peak_bytes, row.peak_bytes);
    all.peak_inbox_bytes = std::max(all.peak_inbox_bytes, row.peak_inbox_bytes);
  }
  return all;
}

std::vector<IdleCause> causes_of(const Row& all) {
  std::vector<IdleCause> causes;
  for (std::size_t i = 0; i < all.idle_ns.size(); ++i) {
    if (all.idle_ns[i] > 0) causes.push_back(static_cast<IdleCause>(i));
  }
  return causes;
}

}  // namespace

std::string_view mode_name(NetworkMode mode) { return to_word(kModes, mode); }

std::string describe_policy(const Policy& policy) {
  // An order that was made of a named schedule has a name too.
  const HintSpec& hint = policy.hint;
  const bool nameless = !hint.order.empty() && hint.name.empty();
  std::string text = nameless ? "the given order" : hint.name;
  text += policy.window == kNoWindow ? " as a hint, no window"
          : policy.window == 1       ? " as a fixed order (window 1)"
                                     : " as a hint, window " + std::to_string(policy.window);
  if (policy.anticipation) {
    const Anticipation& anticipation = *policy.anticipation;
    text += ", anticipation " + std::to_string(anticipation.reach_permille) + "/" +
            std::to_string(anticipation.grace_permille) + " permille";
  }
  if (policy.arrangement == Arrangement::kAscending) text += ", microbatches ascending";
  if (policy.arrangement == Arrangement::kHill) text += ", microbatches as a hill";
  return text;
}

std::string describe_case(const Case& given) {
  const Program& program = given.program;
  std::string text = given.name.empty() ? "" : given.name + ": ";
  text += counted(program.ranks(), "rank") + ", " + counted(program.stages(), "stage") + ", " +
          counted(program.microbatches(), "microbatch");
  if (program.split_backward()) text += ", split backward";
  if (program.ordered_accumulation()) text += ", ordered accumulation";
  if (given.tensor_parallel.lanes > 1) {
    text += ", " + std::to_string(given.tensor_parallel.lanes) + " lanes a rank";
  }
  if (given.queue_depth > 1) text += ", queue depth " + std::to_string(given.queue_depth);
  return text + "\npolicy: " + describe_policy(given.policy) +
         "\nnetwork: " + std::string(mode_name(given.network.mode)) + "\n";
}

std::string message_note(std::int64_t message_ns) {
  return "note: launch-queue: message_ns " + std::to_string(message_ns) +
         " from the mean transfer, since the file gives none\n";
}

std::string describe_result(const SimulationResult& result) {
  std::vector<Row> rows;
  for (std::size_t rank = 0; rank < result.ranks.size(); ++rank) {
    rows.push_back(row_of(result.ranks[rank], rank));
  }
  const Row all = all_of(rows);
  const std::vector<IdleCause> causes = causes_of(all);
  const DisplayUnit time = time_unit(result.makespan_ns);
  const DisplayUnit bytes = byte_unit(std::max(all.peak_bytes, all.peak_inbox_bytes));
  const std::string in_time = " [" + std::string(time.name) + "]";
  const std::string in_bytes = " [" + std::string(bytes.name) + "]";

  std::vector<std::string> header = {"rank", "tasks", "busy" + in_time, "busy", "idle" + in_time};
  for (const IdleCause cause : causes) header.emplace_back(name(cause));
  header.push_back("peak memory" + in_bytes);
  header.push_back("peak inbox" + in_bytes);
  TextTable table(std::move(header));
  const auto add = [&](const Row& row, std::int64_t span_ns) {
    std::vector<std::string> cells = {row.label, std::to_string(row.tasks),
                                      in_unit(row.busy_ns, time), percent(row.busy_ns, span_ns),
                                      in_unit(row.total_idle_ns(), time)};
    for (const IdleCause cause : causes) cells.push_back(in_unit(row.idle_ns[index(cause)], time));
    cells.push_back(in_unit(row.peak_bytes, bytes));
    cells.push_back(in_unit(row.peak_inbox_bytes, bytes));
    table.add(std::move(cells));
  };
  for (const Row& row : rows) add(row, result.makespan_ns);
  table.add_rule();
  const std::int64_t span_ns = result.makespan_ns * static_cast<std::int64_t>(rows.size());
  add(all, span_ns);
  std::string text = table.text();
  text += result.completed ? "\nmakespan " : "\nlast end ";
  text += with_unit(result.makespan_ns, time);
  if (time.size > 1) text += " (" + std::to_string(result.makespan_ns) + " ns)";
  return text + ", idle " + percent(all.total_idle_ns(), span_ns) + "\n";
}

std::string compare_modes(std::span<const ModeRun> runs) {
  std::int64_t longest_ns = 0;
  std::int64_t most_bytes = 0;
  std::vector<Row> totals;
  for (const ModeRun& run : runs) {
    std::vector<Row> rows;
    for (std::size_t rank = 0; rank < run.result.ranks.size(); ++rank) {
      rows.push_back(row_of(run.result.ranks[rank], rank));
    }
    totals.push_back(all_of(rows));
    longest_ns = std::max(longest_ns, run.result.makespan_ns);
    most_bytes = std::max({most_bytes, totals.back().peak_bytes, totals.back().peak_inbox_bytes});
  }
  const DisplayUnit time = time_unit(longest_ns);
  const DisplayUnit bytes = byte_unit(most_bytes);
  const std::string in_bytes = " [" + std::string(bytes.name) + "]";
  TextTable table({"network", "window", "makespan [" + std::string(time.name) + "]",
                   "against first", "idle", "communication", "peak memory" + in_bytes,
                   "peak inbox" + in_bytes});
  const SimulationResult& first = runs.front().result;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const SimulationResult& result = runs[i].result;
    const Row& all = totals[i];
    const std::int64_t span_ns =
        result.makespan_ns * static_cast<std::int64_t>(result.ranks.size());
    const bool both = result.completed && first.completed && first.makespan_ns > 0;
    table.add({std::string(mode_name(runs[i].mode)),
               runs[i].window == kNoWindow ? "none" : std::to_string(runs[i].window),
               result.completed ? in_unit(result.makespan_ns, time) : "blocked",
               both ? fixed(static_cast<double>(result.makespan_ns) /
                                static_cast<double>(first.makespan_ns),
                            3)
                    : "-",
               percent(all.total_idle_ns(), span_ns),
               percent(all.idle_ns[index(IdleCause::kCommunication)], span_ns),
               in_unit(all.peak_bytes, bytes), in_unit(all.peak_inbox_bytes, bytes)});
  }
  return table.text();
}

}  // namespace rrfp
