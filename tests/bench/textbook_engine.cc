#include "tests/bench/textbook_engine.h"

#include <algorithm>
#include <map>
#include <queue>
#include <vector>

namespace rrfp {

namespace {

struct Event {
  std::int64_t time_ns = 0;
  bool arrival = false;
  TaskId task = kNoTask;

  bool operator>(const Event& other) const { return time_ns > other.time_ns; }
};

class Textbook {
 public:
  explicit Textbook(const PreparedCase& prepared)
      : prepared_(prepared),
        program_(prepared.program()),
        position_(static_cast<std::size_t>(program_.task_ids()), -1),
        unmet_(static_cast<std::size_t>(program_.task_ids()), 0),
        ready_(static_cast<std::size_t>(program_.ranks())),
        busy_(static_cast<std::size_t>(program_.ranks()), false),
        held_bytes_(static_cast<std::size_t>(program_.ranks()), 0) {
    for (const std::vector<Task>& order : prepared.schedule().ranks) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        const TaskId id = program_.find(order[i]);
        position_[index(id)] = static_cast<int>(i);
        unmet_[index(id)] = program_.dependencies(id);
      }
    }
  }

  std::int64_t run() {
    for (int m = 0; m < program_.microbatches(); ++m) {
      events_.push({0, true, program_.task_id(0, Slot::kForward, m)});
    }
    std::int64_t now_ns = 0;
    while (!events_.empty()) {
      now_ns = events_.top().time_ns;
      while (!events_.empty() && events_.top().time_ns == now_ns) {
        const Event event = events_.top();
        events_.pop();
        if (event.arrival) {
          satisfy(event.task);
        } else {
          finish(event.task, now_ns);
        }
      }
      for (const int rank : touched_) decide(rank, now_ns);
      touched_.clear();
    }
    return now_ns;
  }

 private:
  static std::size_t index(TaskId id) { return static_cast<std::size_t>(id); }

  void satisfy(TaskId id) {
    if (--unmet_[index(id)] > 0) return;
    const int rank = program_.rank_of(program_.stage_of(id));
    ready_[static_cast<std::size_t>(rank)][position_[index(id)]] = id;
    touched_.push_back(rank);
  }

  void finish(TaskId id, std::int64_t now_ns) {
    const int stage = program_.stage_of(id);
    const int m = program_.microbatch_of(id);
    const Slot slot = program_.slot_of(id);
    const auto rank = static_cast<std::size_t>(program_.rank_of(stage));
    busy_[rank] = false;
    touched_.push_back(static_cast<int>(rank));
    if (slot == Slot::kForward) satisfy(program_.task_id(stage, Slot::kBackward, m));
    if (slot == Slot::kBackward) satisfy(program_.task_id(stage, Slot::kWeight, m));
    if (slot == Slot::kWeight) --held_bytes_[rank];
    for (const EdgeId edge : program_.edges_from(stage, slot)) {
      const auto message = static_cast<std::size_t>(edge * program_.microbatches() + m);
      events_.push({now_ns + prepared_.group_latency_ns()[message], true,
                    program_.task_id(program_.edge(edge).to, slot, m)});
    }
  }

  void decide(int rank_number, std::int64_t now_ns) {
    const auto rank = static_cast<std::size_t>(rank_number);
    if (busy_[rank]) return;
    const std::int64_t budget = *prepared_.input().memory.budget_bytes[rank];
    for (const auto& [position, id] : ready_[rank]) {
      const bool forward = program_.slot_of(id) == Slot::kForward;
      if (forward && held_bytes_[rank] + 1 > budget) continue;
      if (forward) ++held_bytes_[rank];
      busy_[rank] = true;
      events_.push({now_ns + prepared_.duration_ns()[index(id)], false, id});
      ready_[rank].erase(position);
      return;
    }
  }

  const PreparedCase& prepared_;
  const Program& program_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<int> position_;
  std::vector<int> unmet_;
  std::vector<std::map<int, TaskId>> ready_;
  std::vector<bool> busy_;
  std::vector<std::int64_t> held_bytes_;
  std::vector<int> touched_;
};

}  // namespace

std::int64_t textbook_makespan_ns(const PreparedCase& prepared) { return Textbook(prepared).run(); }

}  // namespace rrfp
