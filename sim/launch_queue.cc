#include "sim/launch_queue.h"

#include <algorithm>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

constexpr int kNoAction = -1;

/// One end of a message: the entry that carries it.
struct MessageEnd {
  int rank = 0;
  int action = kNoAction;
};

/// What the evaluation knows of one rank between two of its actions.
struct RankState {
  int next = 0;                     ///< action to issue next
  int blocking = kNoAction;         ///< compute or wait that holds the host
  std::int64_t last_issue_ns = 0;   ///< head of the queue
  std::vector<int> last_on_stream;  ///< action, by stream
  std::vector<int> open_messages;   ///< by action: messages that have not ended
  bool listed = false;              ///< stands in the worklist
};

/// Each rank is driven as far as what is known allows; the end of a
/// communication entry lists its rank again.
class LaunchEvaluation {
 public:
  explicit LaunchEvaluation(const LaunchProgram& program) : program_(program) {
    times_.ranks.resize(program.ranks.size());
    times_.sent_ns.assign(program.messages, kNever);
    times_.arrival_ns.assign(program.messages, kNever);
    ends_[0].resize(program.messages);
    ends_[1].resize(program.messages);
    for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) enter_rank(rank);
  }

  LaunchTimes run() {
    for (std::size_t rank = 0; rank < states_.size(); ++rank) list(static_cast<int>(rank));
    for (std::size_t head = 0; head < worklist_.size(); ++head) {
      const int rank = worklist_[head];
      states_[rank].listed = false;
      while (advance(rank)) {
      }
    }
    summarize();
    return std::move(times_);
  }

 private:
  void enter_rank(std::size_t rank) {
    const LaunchRank& actions = program_.ranks[rank];
    const std::size_t count = actions.actions.size();
    RankState state;
    state.last_on_stream.assign(launch_streams(static_cast<int>(program_.ranks.size())), kNoAction);
    state.open_messages.assign(count, 0);
    times_.ranks[rank] = {std::vector<std::int64_t>(count, kNever),
                          std::vector<std::int64_t>(count, kNever),
                          std::vector<std::int64_t>(count, kNever)};
    for (std::size_t k = 0; k < count; ++k) {
      const LaunchAction& action = actions.actions[k];
      if (action.kind != LaunchKind::kCommunicate) continue;
      state.open_messages[k] = action.last - action.first;
      for (int i = action.first; i < action.last; ++i) {
        const LaunchOperation& operation = actions.operations[i];
        MessageEnd& end = ends_[operation.sends ? 0 : 1][operation.message];
        RRFP_CHECK(end.action == kNoAction);
        end = {static_cast<int>(rank), static_cast<int>(k)};
      }
    }
    states_.push_back(std::move(state));
  }

  void list(int rank) {
    if (states_[rank].listed) return;
    states_[rank].listed = true;
    worklist_.push_back(rank);
  }

  std::int64_t done(int rank, int action) const {
    return action == kNoAction ? 0 : times_.ranks[rank].done_ns[action];
  }

  /// Issues the rank's next action. False where it has none or does not know
  /// yet when it issues.
  bool advance(int rank) {
    RankState& state = states_[rank];
    const LaunchRank& actions = program_.ranks[rank];
    if (state.next == static_cast<int>(actions.actions.size())) return false;
    const LaunchAction& action = actions.actions[state.next];

    const std::int64_t host_ns = done(rank, state.blocking);
    const std::int64_t stream_ns = done(rank, state.last_on_stream[action.stream]);
    if (host_ns == kNever || stream_ns == kNever) return false;
    std::int64_t ready_ns = std::max(state.last_issue_ns, stream_ns);
    if (action.kind == LaunchKind::kWait) {
      for (int i = action.first; i < action.last; ++i) {
        const std::int64_t waited_ns = done(rank, actions.waited[i]);
        if (waited_ns == kNever) return false;
        ready_ns = std::max(ready_ns, waited_ns);
      }
    }
    const std::int64_t decided_ns = std::max(host_ns, action.not_before_ns);
    issue(rank, decided_ns, std::max(ready_ns, decided_ns + action.host_ns));
    return true;
  }

  void issue(int rank, std::int64_t decided_ns, std::int64_t issue_ns) {
    RankState& state = states_[rank];
    LaunchRankTimes& times = times_.ranks[rank];
    const int k = state.next++;
    const LaunchAction& action = program_.ranks[rank].actions[k];
    times.decided_ns[k] = decided_ns;
    times.issue_ns[k] = issue_ns;
    state.last_issue_ns = issue_ns;
    state.last_on_stream[action.stream] = k;
    if (action.kind == LaunchKind::kCommunicate) {
      for (int i = action.first; i < action.last; ++i) {
        meet(program_.ranks[rank].operations[i].message);
      }
      return;
    }
    times.done_ns[k] = issue_ns + action.length_ns;
    if (action.kind != LaunchKind::kDelay) state.blocking = k;
  }

  /// Ends the message if both its entries have issued.
  void meet(std::int32_t message) {
    std::int64_t sent_ns = 0;
    int operations = 0;
    for (const auto& ends : ends_) {
      const MessageEnd& end = ends[message];
      if (end.action == kNoAction) return;
      const std::int64_t issue_ns = times_.ranks[end.rank].issue_ns[end.action];
      if (issue_ns == kNever) return;
      const LaunchAction& action = program_.ranks[end.rank].actions[end.action];
      sent_ns = std::max(sent_ns, issue_ns);
      operations = std::max(operations, action.last - action.first);
    }
    const std::int64_t arrival_ns = sent_ns + program_.message_ns * operations;
    times_.sent_ns[message] = sent_ns;
    times_.arrival_ns[message] = arrival_ns;
    for (const auto& ends : ends_) close(ends[message]);
  }

  void close(const MessageEnd& end) {
    RankState& state = states_[end.rank];
    if (--state.open_messages[end.action] > 0) return;
    const LaunchRank& actions = program_.ranks[end.rank];
    const LaunchAction& action = actions.actions[end.action];
    std::int64_t done_ns = 0;
    for (int i = action.first; i < action.last; ++i) {
      done_ns = std::max(done_ns, times_.arrival_ns[actions.operations[i].message]);
    }
    times_.ranks[end.rank].done_ns[end.action] = done_ns;
    list(end.rank);
  }

  void summarize() {
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      const LaunchRank& actions = program_.ranks[rank];
      if (actions.stuck.has_value()) times_.completed = false;
      for (std::size_t k = 0; k < actions.actions.size(); ++k) {
        const LaunchKind kind = actions.actions[k].kind;
        const std::int64_t done_ns = times_.ranks[rank].done_ns[k];
        if (done_ns == kNever) times_.completed = false;
        if (kind == LaunchKind::kCompute || kind == LaunchKind::kWait) {
          times_.makespan_ns = std::max(times_.makespan_ns, done_ns);
        }
      }
    }
  }

  const LaunchProgram& program_;
  LaunchTimes times_;
  std::vector<RankState> states_;
  std::vector<MessageEnd> ends_[2];  ///< by message: where it is sent, where received
  std::vector<int> worklist_;        ///< ranks that may be able to go on
};

}  // namespace

LaunchTimes evaluate(const LaunchProgram& program) { return LaunchEvaluation(program).run(); }

}  // namespace rrfp
