#include "tests/model/compare_results.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include "scheduler_core/idle_cause.h"
#include "scheduler_core/task.h"

namespace rrfp::model {

namespace {

std::string words(std::int64_t value) { return std::to_string(value); }
std::string words(const Task& task) { return to_string(task); }

template <typename T>
std::string differ(const std::string& what, const T& expected, const T& actual) {
  if (expected == actual) return {};
  return what + ": expected " + words(expected) + ", got " + words(actual);
}

template <typename T>
std::string differ(const std::string& what, const std::vector<T>& expected,
                   const std::vector<T>& actual) {
  for (std::size_t i = 0; i < std::min(expected.size(), actual.size()); ++i) {
    std::string found = differ(what + "[" + std::to_string(i) + "]", expected[i], actual[i]);
    if (!found.empty()) return found;
  }
  return differ(what + " size", static_cast<std::int64_t>(expected.size()),
                static_cast<std::int64_t>(actual.size()));
}

std::string first_of(const std::vector<std::string>& found) {
  for (const std::string& text : found) {
    if (!text.empty()) return text;
  }
  return {};
}

std::string differ_in_rank(const std::string& rank, const RankResult& expected,
                           const RankResult& actual) {
  std::string idle;
  for (std::size_t cause = 0; cause < expected.idle_ns.size() && idle.empty(); ++cause) {
    const std::string name{rrfp::name(static_cast<IdleCause>(cause))};
    idle = differ(rank + " idle " + name, expected.idle_ns[cause], actual.idle_ns[cause]);
  }
  return first_of(
      {differ(rank + " order", expected.order, actual.order),
       differ(rank + " decided_ns", expected.decided_ns, actual.decided_ns),
       differ(rank + " start_ns", expected.start_ns, actual.start_ns),
       differ(rank + " end_ns", expected.end_ns, actual.end_ns),
       differ(rank + " busy_ns", expected.busy_ns, actual.busy_ns),
       differ(rank + " peak_bytes", expected.peak_bytes, actual.peak_bytes),
       differ(rank + " peak_inbox_bytes", expected.peak_inbox_bytes, actual.peak_inbox_bytes),
       idle});
}

std::vector<std::int64_t> flat_messages(const SimulationResult& result) {
  std::vector<std::array<std::int64_t, 5>> rows;
  for (const MessageRecord& message : result.messages) {
    rows.push_back(
        {message.finish_ns, message.edge, message.microbatch, message.sent_ns, message.arrival_ns});
  }
  std::sort(rows.begin(), rows.end());
  std::vector<std::int64_t> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return flat;
}

}  // namespace

std::string difference(const Result<SimulationResult>& expected,
                       const Result<SimulationResult>& actual) {
  if (!expected.ok() || !actual.ok()) {
    if (expected.ok() == actual.ok()) return {};
    return expected.ok() ? "expected a run, got the error: " + actual.error().message
                         : "got a run, expected the error: " + expected.error().message;
  }
  std::vector<std::string> found;
  if (expected->ranks.size() != actual->ranks.size()) return "number of ranks";
  for (std::size_t rank = 0; rank < expected->ranks.size(); ++rank) {
    found.push_back(
        differ_in_rank("rank " + std::to_string(rank), expected->ranks[rank], actual->ranks[rank]));
  }
  const std::vector<std::int64_t> given(expected->arrangement.begin(), expected->arrangement.end());
  const std::vector<std::int64_t> got(actual->arrangement.begin(), actual->arrangement.end());
  found.push_back(differ("arrangement", given, got));
  found.push_back(differ<std::int64_t>("completed", expected->completed, actual->completed));
  found.push_back(differ("blocked", expected->blocked, actual->blocked));
  found.push_back(differ("makespan_ns", expected->makespan_ns, actual->makespan_ns));
  found.push_back(differ("messages (finish, edge, microbatch, sent, arrival)",
                         flat_messages(*expected), flat_messages(*actual)));
  return first_of(found);
}

SimulationResult as_in_a_file(SimulationResult result) {
  result.messages.clear();
  for (RankResult& rank : result.ranks) {
    rank.decided_ns.clear();
    std::int64_t& phases = rank.idle_ns[static_cast<std::size_t>(IdleCause::kRendezvous)];
    rank.idle_ns[static_cast<std::size_t>(IdleCause::kCommunication)] += phases;
    phases = 0;
  }
  return result;
}

}  // namespace rrfp::model
