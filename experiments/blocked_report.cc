#include "experiments/blocked_report.h"

#include <algorithm>
#include <vector>

#include "experiments/text_list.h"
#include "traces/prepared_case.h"

namespace rrfp {

namespace {

class Explanation {
 public:
  Explanation(const PreparedCase& prepared, const SimulationResult& result)
      : prepared_(prepared),
        program_(prepared.program()),
        result_(result),
        started_(static_cast<std::size_t>(program_.task_ids()), false) {
    for (const RankResult& rank : result.ranks) {
      for (const Task& task : rank.order) {
        started_[static_cast<std::size_t>(program_.find(task))] = true;
      }
    }
  }

  std::string line(const Task& blocked) const {
    const std::string head =
        "  rank " + std::to_string(program_.rank_of(blocked.stage)) + ": " + to_string(blocked);
    const std::vector<TaskId> unmet = unmet_inputs(blocked);
    if (!unmet.empty()) {
      std::string list;
      for (const TaskId task : unmet) add_to_list(list, about(task));
      return head + " waits for " + list + "\n";
    }
    if (const std::string partners = unposted_sends(blocked); !partners.empty()) {
      return head + " waits for the rank's sends: " + partners + "\n";
    }
    if (blocked.kind == Kind::kForward) {
      return head + " waits for memory: " + memory(blocked) + "\n";
    }
    return head + " waits for the messages of its phase\n";
  }

 private:
  bool started(TaskId task) const { return started_[static_cast<std::size_t>(task)]; }

  // What has to finish first and has not started. (Whatever has started has
  // finished, for nothing moves any more.)
  std::vector<TaskId> unmet_inputs(const Task& task) const {
    std::vector<TaskId> unmet;
    const auto need = [&](int stage, Slot slot, int microbatch) {
      const TaskId id = program_.task_id(stage, slot, microbatch);
      if (program_.exists(id) && !started(id)) unmet.push_back(id);
    };
    const TaskId id = program_.find(task);
    const Slot slot = program_.slot_of(id);
    if (slot == Slot::kForward) {
      for (const int from : program_.predecessors(task.stage)) need(from, slot, task.microbatch);
    } else if (slot == Slot::kBackward) {
      need(task.stage, Slot::kForward, task.microbatch);
      for (const int from : program_.successors(task.stage)) need(from, slot, task.microbatch);
    } else {
      need(task.stage, Slot::kBackward, task.microbatch);
    }
    if (program_.ordered_accumulation() && program_.accumulates(id) && task.microbatch > 0) {
      for (const Slot earlier : {Slot::kBackward, Slot::kWeight}) {
        const TaskId before = program_.task_id(task.stage, earlier, task.microbatch - 1);
        if (program_.exists(before) && program_.accumulates(before) && !started(before)) {
          unmet.push_back(before);
        }
      }
    }
    return unmet;
  }

  // "0F1 (rank 0, behind 0B0)".
  std::string about(TaskId id) const {
    const Task task = program_.task(id);
    const int rank = program_.rank_of(task.stage);
    std::string text = to_string(task) + " (rank " + std::to_string(rank);
    for (const Task& first : result_.blocked) {
      if (program_.rank_of(first.stage) != rank) continue;
      text += first == task ? ", itself blocked" : ", behind " + to_string(first);
    }
    return text + ")";
  }

  // In rendezvous mode: sends of the rank's last task that nobody receives.
  std::string unposted_sends(const Task& blocked) const {
    if (prepared_.input().network.mode == NetworkMode::kEager) return "";
    const int rank = program_.rank_of(blocked.stage);
    const RankResult& record = result_.ranks[static_cast<std::size_t>(rank)];
    if (record.order.empty()) return "";
    const TaskId last = program_.find(record.order.back());
    std::string text;
    for (const EdgeId id : program_.edges_from(program_.stage_of(last), program_.slot_of(last))) {
      const Edge& edge = program_.edge(id);
      const Slot slot = edge.slot();
      const TaskId receiver = program_.task_id(edge.to, slot, program_.microbatch_of(last));
      if (edge.local() || started(receiver)) continue;
      add_to_list(text, to_string(record.order.back()) + " to " + about(receiver));
    }
    return text;
  }

  std::string memory(const Task& blocked) const {
    const Memory& memory = prepared_.input().memory;
    const int rank = program_.rank_of(blocked.stage);
    const auto at =
        static_cast<std::size_t>(blocked.stage * program_.microbatches() + blocked.microbatch);
    std::string text = memory.activation_bytes.empty()
                           ? ""
                           : "it takes " + std::to_string(memory.activation_bytes[at]) + " bytes";
    if (!memory.budget_bytes.empty() && memory.budget_bytes[static_cast<std::size_t>(rank)]) {
      text += ", the budget of the rank is " +
              std::to_string(*memory.budget_bytes[static_cast<std::size_t>(rank)]) + " bytes";
    }
    const Case& given = prepared_.input();
    const int window = given.policy.window;
    if (given.network.mode == NetworkMode::kEager && window != kNoWindow) {
      text +=
          "; a larger \"window\" than " + std::to_string(window) + ", none, or more memory helps";
    }
    return text;
  }

  const PreparedCase& prepared_;
  const Program& program_;
  const SimulationResult& result_;
  std::vector<bool> started_;
};

}  // namespace

std::string describe_blocked(const Case& given, const SimulationResult& result) {
  const Result<std::unique_ptr<const PreparedCase>> prepared = PreparedCase::create(given);
  if (!prepared.ok()) return prepared.error().message + "\n";
  const Explanation explanation(**prepared, result);
  std::string text = "blocked: no task can start any more\n";
  for (const Task& task : result.blocked) text += explanation.line(task);
  return text;
}

}  // namespace rrfp
