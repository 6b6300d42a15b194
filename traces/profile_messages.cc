#include "traces/profile_messages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace rrfp {

namespace {

using What = ProfileAction::What;
constexpr int kUnknown = ProfileAction::kUnknown;

/// One side of a message.
struct End {
  const ProfileOperation* operation = nullptr;
  std::size_t recording = 0;
};

/// A message that the program has.
struct Expected {
  int iteration = 0;
  Kind kind = Kind::kForward;
  int from_stage = 0;
  int to_stage = 0;
  int microbatch = 0;
};

class Pairing {
 public:
  Pairing(const std::vector<RankRecording>& recordings, const ProfileLayout& layout,
          const std::vector<PlacedTask>& tasks, DroppedRecords* dropped)
      : recordings_(recordings), layout_(layout), tasks_(tasks), dropped_(*dropped) {}

  std::vector<PairedMessage> pair() {
    for (std::size_t i = 0; i < recordings_.size(); ++i) {
      for (const ProfileOperation& operation : recordings_[i].operations) {
        if (operation.action.names_message()) sort_in({&operation, i});
      }
    }
    pair_by_name();
    pair_by_sequence();
    return std::move(paired_);
  }

 private:
  using Place = std::tuple<int, int, int>;  ///< replica, lane, rank
  using Named = std::tuple<int, int, int, int, int, int, int>;
  using Sequence = std::tuple<int, int, int, int, int>;

  struct Ends {
    std::vector<End> sends;
    std::vector<End> receives;
  };

  static Place key(const ProfilePlace& place) { return {place.replica, place.lane, place.rank}; }

  void drop(const std::string& reason, const End& end) {
    dropped_.add(reason, recordings_[end.recording].place(end.operation->place));
  }

  void sort_in(const End& end) {
    const ProfileAction& action = end.operation->action;
    const ProfilePlace& place = layout_.places[end.recording];
    const bool sends = action.what == What::kSend;
    if (action.stage != kUnknown) {
      const int step = (action.kind == Kind::kForward) == sends ? 1 : -1;
      const int other = action.stage + step;
      const int from = sends ? action.stage : other;
      const int to = sends ? other : action.stage;
      if (layout_.program.find_edge(action.kind, from, to) < 0) {
        return drop("a send or receive along no edge between stages", end);
      }
      const Named named = {
          place.replica, place.lane, end.operation->iteration, static_cast<int>(action.kind),
          from,          to,         action.microbatch};
      Ends& ends = named_[named];
      std::vector<End>& side = sends ? ends.sends : ends.receives;
      if (!side.empty()) return drop("a send or receive that stands twice in its iteration", end);
      side.push_back(end);
      return;
    }
    const std::optional<int> peer = peer_of(end);
    if (!peer) return;
    const int from = sends ? place.rank : *peer;
    const int to = sends ? *peer : place.rank;
    Ends& ends = sequences_[{place.replica, place.lane, end.operation->iteration, from, to}];
    (sends ? ends.sends : ends.receives).push_back(end);
  }

  /// The pipeline rank of the other side.
  std::optional<int> peer_of(const End& end) {
    const ProfileAction& action = end.operation->action;
    const ProfilePlace& place = layout_.places[end.recording];
    if (action.peer_rank == kUnknown) {
      drop("a send or receive that names neither stage nor rank", end);
      return std::nullopt;
    }
    if (action.own_rank == place.rank && action.peer_rank < layout_.program.ranks()) {
      return action.peer_rank;
    }
    if (action.own_rank == recordings_[end.recording].rank) {
      for (std::size_t i = 0; i < recordings_.size(); ++i) {
        if (recordings_[i].rank == action.peer_rank) return layout_.places[i].rank;
      }
      drop("a send or receive whose other rank has no file", end);
      return std::nullopt;
    }
    drop("a send or receive whose text does not name its own rank", end);
    return std::nullopt;
  }

  void add(const Expected& expected, const ProfilePlace& place, const End& send,
           const End& receive) {
    PairedMessage paired;
    paired.sender = send.recording;
    paired.receiver = receive.recording;
    TraceMessage& message = paired.message;
    message.iteration = expected.iteration;
    message.replica = place.replica;
    message.lane = place.lane;
    message.kind = expected.kind;
    message.from_stage = expected.from_stage;
    message.to_stage = expected.to_stage;
    message.microbatch = expected.microbatch;
    message.sequence = expected.microbatch;
    message.send.post_ns = send.operation->start_ns;
    message.send.done_ns = send.operation->end_ns;
    message.receive.post_ns = receive.operation->start_ns;
    message.receive.done_ns = receive.operation->end_ns;
    paired_.push_back(paired);
  }

  void pair_by_name() {
    for (const auto& [named, ends] : named_) {
      const auto& [replica, lane, iteration, kind, from, to, microbatch] = named;
      if (ends.receives.empty()) {
        drop("a send without its receive", ends.sends[0]);
      } else if (ends.sends.empty()) {
        drop("a receive without its send", ends.receives[0]);
      } else {
        add({iteration, static_cast<Kind>(kind), from, to, microbatch}, {0, replica, lane},
            ends.sends[0], ends.receives[0]);
      }
    }
  }

  void pair_by_sequence() {
    if (sequences_.empty()) return;
    const std::map<Place, std::vector<const PlacedTask*>> tasks = tasks_by_end();
    for (auto& [sequence, ends] : sequences_) {
      const auto& [replica, lane, iteration, from, to] = sequence;
      const auto of_sender = tasks.find({replica, lane, from});
      const std::vector<Expected> expected =
          of_sender == tasks.end() ? std::vector<Expected>()
                                   : expected_messages(of_sender->second, iteration, to);
      if (ends.sends.size() != ends.receives.size() || ends.sends.size() != expected.size()) {
        const std::string reason =
            "a send or receive between two ranks whose sends, receives and tasks do not count "
            "alike";
        for (const End& end : ends.sends) drop(reason, end);
        for (const End& end : ends.receives) drop(reason, end);
        continue;
      }
      for (std::vector<End>* side : {&ends.sends, &ends.receives}) {
        std::stable_sort(side->begin(), side->end(), [](const End& a, const End& b) {
          return a.operation->start_ns < b.operation->start_ns;
        });
      }
      for (std::size_t k = 0; k < expected.size(); ++k) {
        add(expected[k], {0, replica, lane}, ends.sends[k], ends.receives[k]);
      }
    }
  }

  std::map<Place, std::vector<const PlacedTask*>> tasks_by_end() const {
    std::map<Place, std::vector<const PlacedTask*>> tasks;
    for (const PlacedTask& placed : tasks_) {
      tasks[key(layout_.places[placed.recording])].push_back(&placed);
    }
    for (auto& [place, of_rank] : tasks) {
      std::stable_sort(
          of_rank.begin(), of_rank.end(),
          [](const PlacedTask* a, const PlacedTask* b) { return a->task.end_ns < b->task.end_ns; });
    }
    return tasks;
  }

  /// What the tasks send to that rank, in order; of all iterations where
  /// `iteration` is unknown.
  std::vector<Expected> expected_messages(const std::vector<const PlacedTask*>& tasks,
                                          int iteration, int to_rank) const {
    std::vector<Expected> expected;
    for (const PlacedTask* placed : tasks) {
      const TraceTask& task = placed->task;
      if (iteration != kUnknown && task.iteration != iteration) continue;
      if (task.task.kind == Kind::kWeightGradient) continue;
      const Slot slot = task.task.kind == Kind::kForward ? Slot::kForward : Slot::kBackward;
      for (const EdgeId id : layout_.program.edges_from(task.task.stage, slot)) {
        const Edge& edge = layout_.program.edge(id);
        if (!edge.crosses() || edge.to_rank != to_rank) continue;
        expected.push_back({task.iteration, edge.kind, edge.from, edge.to, task.task.microbatch});
      }
    }
    return expected;
  }

  const std::vector<RankRecording>& recordings_;
  const ProfileLayout& layout_;
  const std::vector<PlacedTask>& tasks_;
  DroppedRecords& dropped_;
  std::map<Named, Ends> named_;
  std::map<Sequence, Ends> sequences_;
  std::vector<PairedMessage> paired_;
};

}  // namespace

std::vector<PairedMessage> pair_messages(const std::vector<RankRecording>& recordings,
                                         const ProfileLayout& layout,
                                         const std::vector<PlacedTask>& tasks,
                                         DroppedRecords* dropped) {
  return Pairing(recordings, layout, tasks, dropped).pair();
}

}  // namespace rrfp
