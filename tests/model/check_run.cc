#include "tests/model/check_run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/model/reference_case.h"

namespace rrfp::model {

namespace {

struct Times {
  std::int64_t decided_ns = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

class RunChecker {
 public:
  RunChecker(const ReferenceCase& ready, const SimulationResult& result)
      : case_(ready),
        program_(ready.program),
        result_(result),
        times_(static_cast<std::size_t>(program_.task_ids())) {}

  std::string check() {
    if (static_cast<int>(result_.ranks.size()) != program_.ranks()) return "number of ranks";
    for (int rank = 0; rank < program_.ranks() && fault_.empty(); ++rank) collect(rank);
    for (int rank = 0; rank < program_.ranks() && fault_.empty(); ++rank) {
      check_rank(rank);
      check_window(rank);
      check_memory(rank);
      check_sums(rank);
    }
    for (TaskId id = 0; id < program_.task_ids() && fault_.empty(); ++id) check_dependencies(id);
    if (fault_.empty()) check_links();
    if (fault_.empty()) check_end();
    return fault_;
  }

 private:
  const RankResult& rank_of_result(int rank) const {
    return result_.ranks[static_cast<std::size_t>(rank)];
  }
  const std::optional<Times>& times(TaskId id) const {
    return times_[static_cast<std::size_t>(id)];
  }

  // The first fault stands.
  void expect(bool holds, const std::string& rule) {
    if (!holds && fault_.empty()) fault_ = rule;
  }
  void expect(bool holds, const char* rule, TaskId id) {
    if (!holds && fault_.empty()) fault_ = to_string(program_.task(id)) + " " + rule;
  }

  void collect(int rank) {
    const RankResult& self = rank_of_result(rank);
    const std::size_t count = self.order.size();
    expect(self.decided_ns.size() == count && self.start_ns.size() == count &&
               self.end_ns.size() == count,
           "rank " + std::to_string(rank) + " has lists of different sizes");
    for (std::size_t i = 0; i < count && fault_.empty(); ++i) {
      const TaskId id = program_.find(self.order[i]);
      expect(id != kNoTask, to_string(self.order[i]) + " is not a task of the program");
      if (id == kNoTask) return;
      expect(program_.rank_of(program_.stage_of(id)) == rank, "runs on another rank", id);
      expect(!times(id), "runs twice", id);
      times_[static_cast<std::size_t>(id)] = {self.decided_ns[i], self.start_ns[i], self.end_ns[i]};
    }
  }

  void check_rank(int rank) {
    const RankResult& self = rank_of_result(rank);
    const auto depth = static_cast<std::size_t>(case_.queue_depth());
    for (std::size_t i = 0; i < self.order.size(); ++i) {
      const TaskId id = program_.find(self.order[i]);
      expect(
          self.start_ns[i] >= self.decided_ns[i] + case_.arranged.dispatch_ns + case_.announce_ns(),
          "starts before it is dispatched", id);
      expect(self.end_ns[i] - self.start_ns[i] == case_.duration_ns[static_cast<std::size_t>(id)],
             "does not take its duration", id);
      if (i == 0) continue;
      expect(self.decided_ns[i] >= self.decided_ns[i - 1], "is decided out of order", id);
      expect(self.start_ns[i] >= self.end_ns[i - 1], "starts before the one before ends", id);
      expect(i < depth || self.decided_ns[i] >= self.end_ns[i - depth],
             "is decided while the queue is full", id);
    }
  }

  void check_window(int rank) {
    const int window = case_.arranged.policy.window;
    if (window == kNoWindow) return;
    std::vector<bool> decided(case_.hint[static_cast<std::size_t>(rank)].size(), false);
    for (const Task& task : rank_of_result(rank).order) {
      const TaskId id = program_.find(task);
      const auto first = std::find(decided.begin(), decided.end(), false) - decided.begin();
      const int position = case_.position[static_cast<std::size_t>(id)];
      expect(position < first + window, "is decided outside the window", id);
      decided[static_cast<std::size_t>(position)] = true;
    }
  }

  // When what `edge` carries can have reached the rank, and every lane of it.
  struct Reach {
    std::int64_t group_ns = 0;
    std::int64_t lanes_ns = 0;
  };
  std::optional<Reach> earliest(EdgeId edge, int microbatch) const {
    const Edge& along = program_.edge(edge);
    const Slot slot = along.kind == Kind::kForward ? Slot::kForward : Slot::kBackward;
    const std::optional<Times>& producer = times(program_.task_id(along.from, slot, microbatch));
    if (!producer) return std::nullopt;
    if (along.local()) return Reach{producer->end_ns, producer->end_ns};
    const std::int64_t sent_ns = producer->end_ns + case_.busy_ns(edge, microbatch);
    const std::int64_t slowest_ns = sent_ns + case_.slowest_latency_ns(edge, microbatch);
    if (case_.rendezvous()) return Reach{slowest_ns, slowest_ns};
    return Reach{sent_ns + case_.group_latency_ns(edge, microbatch), slowest_ns};
  }

  void check_dependencies(TaskId id) {
    if (!times(id)) return;
    const int microbatch = program_.microbatch_of(id);
    for (const Dependency& dependency : case_.dependencies[static_cast<std::size_t>(id)]) {
      switch (dependency.what) {
        case Dependency::What::kInput:
          expect(times(id)->decided_ns >= case_.input_ready_ns(microbatch),
                 "is decided before its input is ready", id);
          break;
        case Dependency::What::kFinish:
          expect(times(dependency.task) && times(id)->decided_ns >= times(dependency.task)->end_ns,
                 "is decided before the task that it needs has finished", id);
          break;
        case Dependency::What::kMessage: {
          const std::optional<Reach> reach = earliest(dependency.edge, microbatch);
          expect(reach && times(id)->decided_ns >= reach->group_ns,
                 "is decided before its message can have arrived", id);
          expect(reach && times(id)->start_ns >= reach->lanes_ns,
                 "starts before its message can have reached all lanes", id);
          break;
        }
      }
    }
  }

  // The activation that the end of `id` frees.
  std::int64_t freed_by(TaskId id) const {
    const int stage = program_.stage_of(id);
    const int microbatch = program_.microbatch_of(id);
    const auto flat = static_cast<std::size_t>(stage * program_.microbatches() + microbatch);
    const std::int64_t whole = case_.activation_bytes[flat];
    const bool has_weight = program_.exists(program_.task_id(stage, Slot::kWeight, microbatch));
    switch (program_.slot_of(id)) {
      case Slot::kForward:
        return program_.backward_of(stage) == Backward::kNone ? whole : 0;
      case Slot::kBackward:
        return has_weight ? whole - case_.stash_bytes[flat] : whole;
      case Slot::kWeight:
        break;
    }
    return case_.stash_bytes[flat];
  }

  // The bytes held when the i-th decision of a rank has been made. A task that
  // ends at that very instant has surely ended only where the queue needs its
  // place; `sure` leaves out the others.
  std::int64_t bytes_after_decision(const RankResult& self, std::size_t i, bool sure) const {
    const auto depth = static_cast<std::size_t>(case_.queue_depth());
    std::int64_t bytes = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      const TaskId id = program_.find(self.order[j]);
      if (program_.slot_of(id) == Slot::kForward) {
        bytes += case_.activation_bytes[static_cast<std::size_t>(
            program_.stage_of(id) * program_.microbatches() + program_.microbatch_of(id))];
      }
      if (j == i) continue;
      const bool ended = self.end_ns[j] < self.decided_ns[i] || i - j >= depth ||
                         (!sure && self.end_ns[j] == self.decided_ns[i]);
      if (ended) bytes -= freed_by(id);
    }
    return bytes;
  }

  void check_memory(int rank) {
    const RankResult& self = rank_of_result(rank);
    const std::string name = "rank " + std::to_string(rank);
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < self.order.size(); ++i) {
      least = std::max(least, bytes_after_decision(self, i, false));
      most = std::max(most, bytes_after_decision(self, i, true));
    }
    expect(least <= self.peak_bytes && self.peak_bytes <= most,
           name + " reports a peak of " + std::to_string(self.peak_bytes) + " bytes, not " +
               std::to_string(least) + " to " + std::to_string(most));
    expect(self.peak_bytes <= case_.budget_bytes(rank).value_or(self.peak_bytes),
           name + " holds more than its budget");
  }

  void check_sums(int rank) {
    const RankResult& self = rank_of_result(rank);
    std::int64_t busy = 0;
    for (std::size_t i = 0; i < self.order.size(); ++i) busy += self.end_ns[i] - self.start_ns[i];
    expect(busy == self.busy_ns, "rank " + std::to_string(rank) + " busy_ns is not its tasks'");
    std::int64_t idle = 0;
    for (const std::int64_t ns : self.idle_ns) {
      idle += ns;
      expect(ns >= 0, "rank " + std::to_string(rank) + " has a negative idle time");
    }
    expect(idle + busy == result_.makespan_ns,
           "rank " + std::to_string(rank) + " busy " + std::to_string(busy) + " and idle " +
               std::to_string(idle) + " do not make the makespan " +
               std::to_string(result_.makespan_ns));
  }

  void check_links() {
    if (case_.rendezvous()) return;
    std::map<std::pair<int, int>, std::vector<MessageRecord>> links;
    for (const MessageRecord& message : result_.messages) {
      const Edge& edge = program_.edge(message.edge);
      const Slot slot = edge.kind == Kind::kForward ? Slot::kForward : Slot::kBackward;
      const TaskId producer = program_.task_id(edge.from, slot, message.microbatch);
      expect(times(producer) && times(producer)->end_ns == message.finish_ns,
             "sends a message that is not at its end", producer);
      const std::int64_t on_the_way_ns = case_.busy_ns(message.edge, message.microbatch) +
                                         case_.group_latency_ns(message.edge, message.microbatch);
      expect(message.sent_ns >= message.finish_ns &&
                 message.arrival_ns == message.sent_ns + on_the_way_ns,
             "sends a message that takes another time", producer);
      links[{edge.from_rank, edge.to_rank}].push_back(message);
    }
    for (auto& [link, messages] : links) check_link(messages);
  }

  // First in, first out, one at a time. Of messages sent at one instant all
  // but the last took no time.
  void check_link(std::vector<MessageRecord>& messages) {
    const auto busy_ns = [this](const MessageRecord& message) {
      return case_.busy_ns(message.edge, message.microbatch);
    };
    std::sort(messages.begin(), messages.end(),
              [&](const MessageRecord& a, const MessageRecord& b) {
                return std::make_tuple(a.sent_ns, busy_ns(a), a.finish_ns) <
                       std::make_tuple(b.sent_ns, busy_ns(b), b.finish_ns);
              });
    for (std::size_t i = 1; i < messages.size(); ++i) {
      expect(messages[i].finish_ns >= messages[i - 1].finish_ns,
             "a link carries a message before one that finished earlier");
      expect(messages[i].sent_ns >= messages[i - 1].sent_ns + busy_ns(messages[i - 1]),
             "a link carries two messages at a time");
    }
  }

  void check_end() {
    std::int64_t last_ns = 0;
    bool complete = true;
    for (TaskId id = 0; id < program_.task_ids(); ++id) {
      if (!program_.exists(id)) continue;
      complete = complete && times(id).has_value();
      if (times(id)) last_ns = std::max(last_ns, times(id)->end_ns);
    }
    expect(complete == result_.completed, "completed says otherwise than the tasks");
    expect(complete == result_.blocked.empty(), "blocked says otherwise than the tasks");
    expect(result_.makespan_ns == last_ns || (case_.rendezvous() && result_.makespan_ns > last_ns),
           "the makespan is not the last end");
  }

  const ReferenceCase& case_;
  const Program& program_;
  const SimulationResult& result_;
  std::vector<std::optional<Times>> times_;  ///< by TaskId
  std::string fault_;
};

}  // namespace

std::string check_run(const Case& given, const SimulationResult& result) {
  const Result<ReferenceCase> ready = prepare_case(given);
  if (!ready.ok()) return "the case is not valid: " + ready.error().message;
  return RunChecker(*ready, result).check();
}

}  // namespace rrfp::model
