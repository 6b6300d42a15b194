#include "tests/bench/textbook_engine.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <vector>

namespace rrfp {

namespace {

struct Event {
  std::int64_t time_ns = 0;
  bool arrival = false;  // of an input of `task`; else the end of `task`
  Task task;

  bool operator>(const Event& other) const { return time_ns > other.time_ns; }
};

struct Rank {
  bool busy = false;
  std::map<int, Task> ready;                // by hint position
  std::map<int, std::int64_t> token_bytes;  // by stage
  std::map<int, std::int64_t> held_bytes;   // by stage
  std::int64_t peak_bytes = 0;
  std::int64_t busy_ns = 0;
};

}  // namespace

class TextbookEngine::State {
 public:
  explicit State(const PreparedCase& prepared)
      : prepared_(prepared),
        program_(prepared.program()),
        ranks_(static_cast<std::size_t>(program_.ranks())) {
    for (int stage = 0; stage < program_.stages(); ++stage) {
      Rank& rank = ranks_[static_cast<std::size_t>(program_.rank_of(stage))];
      rank.held_bytes[stage] = 0;
      rank.token_bytes[stage] =
          token_bytes(program_, prepared.input().memory.activation_bytes, stage);
    }
    for (const std::vector<Task>& order : prepared.schedule().ranks) {
      int position = 0;
      for (const Task& task : order) {
        position_[task] = position++;
        initial_unmet_[task] = program_.dependencies(program_.find(task));
      }
    }
  }

  std::int64_t run() {
    unmet_ = initial_unmet_;
    for (Rank& rank : ranks_) rank.peak_bytes = rank.busy_ns = 0;
    for (const auto& [task, unmet] : unmet_) {
      if (task.kind == Kind::kForward && program_.predecessors(task.stage).empty()) {
        events_.push({0, true, task});
      }
    }
    std::int64_t now_ns = 0;
    while (!events_.empty()) {
      now_ns = events_.top().time_ns;
      std::map<int, bool> touched;
      while (!events_.empty() && events_.top().time_ns == now_ns) {
        const Event event = events_.top();
        events_.pop();
        touched[program_.rank_of(event.task.stage)] = true;
        if (event.arrival) {
          satisfy(event.task);
        } else {
          finish(event.task, now_ns);
        }
      }
      for (const auto& [rank, decides] : touched) decide(rank, now_ns);
    }
    return now_ns;
  }

 private:
  Rank& rank_of(const Task& task) {
    return ranks_[static_cast<std::size_t>(program_.rank_of(task.stage))];
  }
  std::int64_t activation(const Task& task) const {
    const int index = task.stage * program_.microbatches() + task.microbatch;
    return prepared_.input().memory.activation_bytes[static_cast<std::size_t>(index)];
  }

  void satisfy(const Task& task) {
    const auto found = unmet_.find(task);
    if (found == unmet_.end() || --found->second > 0) return;
    rank_of(task).ready[position_.at(task)] = task;
  }

  void finish(const Task& task, std::int64_t now_ns) {
    Rank& rank = rank_of(task);
    rank.busy = false;
    const int m = task.microbatch;
    const bool forward = task.kind == Kind::kForward;
    if (forward) {
      satisfy({task.stage, Kind::kInputGradient, m});
    } else if (task.kind == Kind::kInputGradient) {
      satisfy({task.stage, Kind::kWeightGradient, m});
    } else {
      rank.held_bytes[task.stage] -= activation(task);
      return;
    }
    const Kind kind = task.kind;
    for (const int to :
         forward ? program_.successors(task.stage) : program_.predecessors(task.stage)) {
      const Kind sent = forward ? Kind::kForward : Kind::kBackward;
      const int message = program_.find_edge(sent, task.stage, to) * program_.microbatches() + m;
      const std::int64_t latency_ns =
          prepared_.group_latency_ns()[static_cast<std::size_t>(message)];
      events_.push({now_ns + latency_ns, true, {to, kind, m}});
    }
  }

  // The sum over the rank's stages of max(bytes held, token), with F counted in.
  bool admits(int number, const Task& task) const {
    const Rank& rank = ranks_[static_cast<std::size_t>(number)];
    std::int64_t sum = 0;
    for (const auto& [stage, held] : rank.held_bytes) {
      const std::int64_t more = stage == task.stage ? activation(task) : 0;
      sum += std::max(held + more, rank.token_bytes.at(stage));
    }
    return sum <= *prepared_.input().memory.budget_bytes[static_cast<std::size_t>(number)];
  }

  void decide(int number, std::int64_t now_ns) {
    Rank& rank = ranks_[static_cast<std::size_t>(number)];
    if (rank.busy) return;
    for (const auto& [position, task] : rank.ready) {
      if (task.kind == Kind::kForward && !admits(number, task)) continue;
      start(rank, position, task, now_ns);
      return;
    }
  }

  void start(Rank& rank, int position, Task task, std::int64_t now_ns) {
    if (task.kind == Kind::kForward) {
      rank.held_bytes[task.stage] += activation(task);
      std::int64_t held = 0;
      for (const auto& [stage, bytes] : rank.held_bytes) held += bytes;
      rank.peak_bytes = std::max(rank.peak_bytes, held);
    }
    const std::int64_t length_ns =
        prepared_.duration_ns()[static_cast<std::size_t>(program_.find(task))];
    rank.busy = true;
    rank.busy_ns += length_ns;
    rank.ready.erase(position);
    events_.push({now_ns + length_ns, false, task});
  }

  const PreparedCase& prepared_;
  const Program& program_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<Task, int> position_;  // in the hint of its rank
  std::map<Task, int> initial_unmet_;
  std::map<Task, int> unmet_;  // dependencies
  std::vector<Rank> ranks_;
};

TextbookEngine::TextbookEngine(const PreparedCase& prepared)
    : state_(std::make_unique<State>(prepared)) {}

TextbookEngine::~TextbookEngine() = default;

std::int64_t TextbookEngine::run() { return state_->run(); }

}  // namespace rrfp
