#include "traces/profile_assembly.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "traces/profile_clocks.h"
#include "traces/profile_messages.h"
#include "traces/profile_width.h"

namespace rrfp {

namespace {

using What = ProfileAction::What;
constexpr int kUnknown = ProfileAction::kUnknown;
/// Older files have times of a microsecond.
constexpr std::int64_t kClockGrainNs = 1000;

class Assembler {
 public:
  Assembler(std::vector<RankRecording> recordings, ProfileLayout layout, ProfileReport report)
      : recordings_(std::move(recordings)),
        layout_(std::move(layout)),
        report_(std::move(report)),
        offsets_ns_(recordings_.size(), 0) {}

  ProfileImport assemble() {
    describe_ranks();
    place_tasks();
    messages_ = pair_messages(recordings_, layout_, tasks_, &report_.dropped);
    align();
    move_to_one_clock();
    find_ready_times();
    std::vector<TraceRecord> records = sorted_records();
    count_from_iterations(&records);

    TraceHeader header(layout_.program);
    header.replicas = layout_.replicas;
    header.lanes = layout_.lanes;
    for (const ProfileReport::Rank& rank : report_.ranks) {
      if (!rank.clock_error_ns) continue;
      header.clocks.push_back({rank.recording.rank, rank.clock_offset_ns, 0, *rank.clock_error_ns});
    }
    report_.messages = static_cast<std::int64_t>(messages_.size());
    return {std::move(header), std::move(records), std::move(report_)};
  }

 private:
  void describe_ranks() {
    for (std::size_t i = 0; i < recordings_.size(); ++i) {
      ProfileReport::Rank rank;
      rank.recording = recordings_[i];
      rank.recording.operations.clear();
      rank.place = layout_.places[i];
      report_.ranks.push_back(std::move(rank));
    }
  }

  void drop(const std::string& reason, std::size_t recording, const ProfileOperation& operation) {
    report_.dropped.add(reason, recordings_[recording].place(operation.place));
  }

  void place_tasks() {
    using Key = std::tuple<int, int, int, Task>;  // iteration, replica, lane
    std::set<Key> seen;
    for (std::size_t i = 0; i < recordings_.size(); ++i) {
      for (const ProfileOperation& operation : recordings_[i].operations) {
        if (operation.action.what == What::kSpan) add_span(i, operation);
        if (operation.action.what != What::kTask) continue;
        PlacedTask placed;
        placed.recording = i;
        TraceTask& task = placed.task;
        const ProfilePlace& place = layout_.places[i];
        task.iteration = operation.iteration;
        task.replica = place.replica;
        task.rank = place.rank;
        task.lane = place.lane;
        task.task = {stage_of(operation, layout_, i), operation.action.kind,
                     operation.action.microbatch};
        task.start_ns = operation.start_ns;
        task.end_ns = operation.end_ns;
        if (task.task.stage == kUnknown) {
          drop("a task whose annotation names no stage, on a rank of several", i, operation);
        } else if (!seen.insert({task.iteration, task.replica, task.lane, task.task}).second) {
          drop("a task that stands twice in its iteration", i, operation);
        } else {
          tasks_.push_back(placed);
          ++report_.ranks[i].tasks;
        }
      }
    }
  }

  void add_span(std::size_t i, const ProfileOperation& operation) {
    const ProfilePlace& place = layout_.places[i];
    TraceSpan span;
    span.iteration = operation.iteration;
    span.replica = place.replica;
    span.rank = place.rank;
    span.lane = place.lane;
    span.name = operation.action.text;
    span.start_ns = operation.start_ns;
    span.end_ns = operation.end_ns;
    if (!operation.group.empty()) {
      // Members of a group call its collectives in one order.
      int& calls = calls_[{i, operation.iteration, span.name, operation.group}];
      span.group = operation.group + " #" + std::to_string(calls++);
    }
    spans_.emplace_back(i, std::move(span));
    ++report_.ranks[i].spans;
  }

  void align() {
    std::vector<ClockBound> bounds;
    for (const PairedMessage& paired : messages_) {
      const MessageTimes& send = paired.message.send;
      const MessageTimes& receive = paired.message.receive;
      bounds.push_back({static_cast<int>(paired.sender), static_cast<int>(paired.receiver),
                        receive.post_ns - send.done_ns, receive.done_ns - send.post_ns});
      ++report_.ranks[paired.sender].message_ends;
      ++report_.ranks[paired.receiver].message_ends;
    }
    const AlignedClocks aligned =
        align_clocks(static_cast<int>(recordings_.size()), bounds, kClockGrainNs);
    report_.clocks_moved = aligned.moved;
    report_.clocks_contradiction_ns = aligned.contradiction_ns;
    for (std::size_t i = 0; i < recordings_.size(); ++i) {
      offsets_ns_[i] = aligned.clocks[i].offset_ns;
      report_.ranks[i].clock_offset_ns = aligned.clocks[i].offset_ns;
      report_.ranks[i].clock_error_ns = aligned.clocks[i].error_ns;
    }
  }

  void move_to_one_clock() {
    for (PlacedTask& placed : tasks_) {
      placed.task.start_ns -= offsets_ns_[placed.recording];
      placed.task.end_ns -= offsets_ns_[placed.recording];
    }
    for (auto& [recording, span] : spans_) {
      span.start_ns -= offsets_ns_[recording];
      span.end_ns -= offsets_ns_[recording];
    }
    for (PairedMessage& paired : messages_) {
      MessageTimes& send = paired.message.send;
      MessageTimes& receive = paired.message.receive;
      send.post_ns -= offsets_ns_[paired.sender];
      send.done_ns -= offsets_ns_[paired.sender];
      receive.post_ns -= offsets_ns_[paired.receiver];
      receive.done_ns -= offsets_ns_[paired.receiver];
      const std::int64_t match_ns = std::max(send.post_ns, receive.post_ns);
      const std::int64_t done_ns = std::min(send.done_ns, receive.done_ns);
      if (done_ns < match_ns) ++report_.early_ends;
      send.match_ns = receive.match_ns = match_ns;
      send.done_ns = receive.done_ns = std::max(done_ns, match_ns);
    }
  }

  void find_ready_times() {
    using Key = std::tuple<int, int, int, Task>;  // iteration, replica, lane
    std::map<Key, std::int64_t> known;            // arrivals by the task that waits
    const auto learn = [&](const Key& key, std::int64_t time_ns) {
      const auto [at, added] = known.emplace(key, time_ns);
      if (!added) at->second = std::max(at->second, time_ns);
    };
    for (const PairedMessage& paired : messages_) {
      const TraceMessage& message = paired.message;
      for (const Kind kind : waiting_kinds(message.kind)) {
        learn({message.iteration, message.replica, message.lane,
               Task{message.to_stage, kind, message.microbatch}},
              message.receive.done_ns);
      }
    }
    for (const PlacedTask& placed : tasks_) {
      const TraceTask& task = placed.task;
      if (task.task.kind != Kind::kForward) continue;
      for (const Kind kind : {Kind::kBackward, Kind::kInputGradient}) {
        learn({task.iteration, task.replica, task.lane,
               Task{task.task.stage, kind, task.task.microbatch}},
              task.end_ns);
      }
    }
    for (PlacedTask& placed : tasks_) {
      TraceTask& task = placed.task;
      task.ready_ns = task.decided_ns = task.start_ns;
      const auto at = known.find({task.iteration, task.replica, task.lane, task.task});
      // Clocks disagree by their errors.
      if (at != known.end()) task.ready_ns = std::min(at->second, task.start_ns);
    }
  }

  static std::vector<Kind> waiting_kinds(Kind message) {
    if (message == Kind::kForward) return {Kind::kForward};
    return {Kind::kBackward, Kind::kInputGradient};
  }

  std::vector<TraceRecord> sorted_records() const {
    using Order = std::tuple<int, std::size_t, int, int, int, std::int64_t>;
    std::vector<std::pair<Order, TraceRecord>> sorted;
    for (const PlacedTask& placed : tasks_) {
      const TraceTask& task = placed.task;
      sorted.emplace_back(
          Order{task.iteration, 0, task.replica, task.rank, task.lane, task.start_ns}, task);
    }
    for (const PairedMessage& paired : messages_) {
      const TraceMessage& message = paired.message;
      sorted.emplace_back(Order{message.iteration, 1, message.replica, message.from_stage,
                                message.lane, message.send.post_ns},
                          message);
    }
    for (const auto& [recording, span] : spans_) {
      sorted.emplace_back(
          Order{span.iteration, 2, span.replica, span.rank, span.lane, span.start_ns}, span);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<TraceRecord> records;
    records.reserve(sorted.size());
    for (auto& [order, record] : sorted) records.push_back(std::move(record));
    return records;
  }

  void count_from_iterations(std::vector<TraceRecord>* records) {
    std::map<int, std::int64_t> begin_ns;
    const auto seen = [&](int iteration, std::int64_t time_ns) {
      const auto [at, added] = begin_ns.emplace(iteration, time_ns);
      if (!added) at->second = std::min(at->second, time_ns);
    };
    for (const PlacedTask& placed : tasks_) seen(placed.task.iteration, placed.task.start_ns);
    for (const auto& [recording, span] : spans_) seen(span.iteration, span.start_ns);
    for (const PairedMessage& paired : messages_) {
      seen(paired.message.iteration,
           std::min(paired.message.send.post_ns, paired.message.receive.post_ns));
    }
    report_.iterations = static_cast<std::int64_t>(begin_ns.size());
    for (TraceRecord& record : *records) {
      if (auto* task = std::get_if<TraceTask>(&record)) {
        const std::int64_t origin_ns = begin_ns[task->iteration];
        for (std::int64_t* time :
             {&task->ready_ns, &task->decided_ns, &task->start_ns, &task->end_ns}) {
          *time -= origin_ns;
        }
      } else if (auto* message = std::get_if<TraceMessage>(&record)) {
        const std::int64_t origin_ns = begin_ns[message->iteration];
        for (MessageTimes* side : {&message->send, &message->receive}) {
          side->post_ns -= origin_ns;
          side->match_ns -= origin_ns;
          side->done_ns -= origin_ns;
        }
      } else if (auto* span = std::get_if<TraceSpan>(&record)) {
        const std::int64_t origin_ns = begin_ns[span->iteration];
        span->start_ns -= origin_ns;
        span->end_ns -= origin_ns;
      }
    }
  }

  std::vector<RankRecording> recordings_;
  ProfileLayout layout_;
  ProfileReport report_;
  std::vector<std::int64_t> offsets_ns_;  ///< by recording
  std::vector<PlacedTask> tasks_;
  std::vector<PairedMessage> messages_;
  std::vector<std::pair<std::size_t, TraceSpan>> spans_;  ///< with their recording
  /// Of collectives so far, by recording, iteration, name and group.
  std::map<std::tuple<std::size_t, int, std::string, std::string>, int> calls_;
};

// Of one file alone, no message has both of its ends.
void count_message_ends(const std::vector<RankRecording>& recordings, ProfileReport& report) {
  if (recordings.size() == 1) return;
  for (const RankRecording& recording : recordings) {
    report.message_ends += std::count_if(
        recording.operations.begin(), recording.operations.end(),
        [](const ProfileOperation& operation) { return operation.action.names_message(); });
  }
  if (const std::optional<ProfileWidth> width = width_of_messages(recordings)) {
    report.width_by_messages = std::to_string(width->ranks) +
                               (width->ranks == 1 ? " rank runs" : " ranks run") + " each stage (" +
                               width->why + ")";
  }
}

}  // namespace

Result<ProfileImport> assemble_profiles(std::vector<RankRecording> recordings,
                                        const ProfileLayoutOptions& options, ProfileReport report) {
  std::stable_sort(recordings.begin(), recordings.end(),
                   [](const RankRecording& a, const RankRecording& b) { return a.rank < b.rank; });
  Result<ProfileLayout> layout = lay_out_profiles(recordings, options);
  if (!layout.ok()) return layout.error();
  report.notes.insert(report.notes.end(), layout->notes.begin(), layout->notes.end());
  report.missing_ranks = ranks_without_file(recordings);
  count_message_ends(recordings, report);
  return Assembler(std::move(recordings), *std::move(layout), std::move(report)).assemble();
}

}  // namespace rrfp
