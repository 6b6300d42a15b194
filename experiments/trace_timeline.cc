#include "experiments/trace_timeline.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "experiments/trace_events.h"

namespace rrfp {

namespace {

constexpr std::int64_t kGapNs = 1'000'000;  // between two iterations

JsonValue about(const TraceHeader& header) {
  JsonValue out{JsonObject()};
  out.add("name", JsonValue(header.name));
  for (const auto& [what, version] : header.versions) out.add(what, JsonValue(version));
  return out;
}

class TraceTimelineWriter {
 public:
  explicit TraceTimelineWriter(const TraceHeader& header)
      : header_(header), events_(about(header)) {
    write_names();
  }

  void write(const TraceStep& step) {
    if (header_.origin == "iteration") shift_ns_ = next_origin_ns_;
    slices_.clear();
    for (const TraceTask& task : step.tasks) write_task(task);
    for (const TraceSpan& span : step.spans) write_span(span);
    for (const TraceMessage& message : step.messages) write_message(message);
    next_origin_ns_ = last_end_ns_ + kGapNs;
  }

  std::string finish() { return events_.finish(); }

 private:
  struct Slice {
    TraceTrack track;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
  };
  using Key = std::tuple<int, int, int, Slot, int>;  // replica, lane, stage, slot, microbatch

  // Even tracks hold tasks, the odd one after each spans.
  TraceTrack track(int replica, int rank, int lane, bool of_spans = false) const {
    return {replica, 2 * (rank * header_.lanes + lane) + (of_spans ? 1 : 0)};
  }

  void write_names() {
    const std::string name = header_.name.empty() ? "rrfp" : header_.name;
    for (int replica = 0; replica < header_.replicas; ++replica) {
      events_.name_process(
          replica, name + (header_.replicas > 1 ? ", replica " + std::to_string(replica) : ""));
      for (int rank = 0; rank < header_.program.ranks(); ++rank) {
        for (int lane = 0; lane < header_.lanes; ++lane) {
          events_.name_track(track(replica, rank, lane),
                             "rank " + std::to_string(rank) +
                                 (header_.lanes > 1 ? " lane " + std::to_string(lane) : ""));
        }
      }
    }
  }

  void write_task(const TraceTask& task) {
    const Slice slice = {track(task.replica, task.rank, task.lane), shift_ns_ + task.start_ns,
                         shift_ns_ + task.end_ns};
    slices_[{task.replica, task.lane, task.task.stage, slot_of(task.task.kind),
             task.task.microbatch}] = slice;
    last_end_ns_ = std::max(last_end_ns_, slice.end_ns);
    JsonValue event = trace_slice(to_string(task.task), category_of(task.task.kind), slice.track,
                                  slice.start_ns, slice.end_ns);
    JsonValue arguments{JsonObject()};
    arguments.add("iteration", JsonValue(task.iteration));
    arguments.add("stage", JsonValue(task.task.stage));
    arguments.add("microbatch", JsonValue(task.task.microbatch));
    arguments.add("ready_ns", JsonValue(task.ready_ns));
    arguments.add("decided_ns", JsonValue(task.decided_ns));
    event.add("args", std::move(arguments));
    events_.add(event);
  }

  void write_span(const TraceSpan& span) {
    last_end_ns_ = std::max(last_end_ns_, shift_ns_ + span.end_ns);
    JsonValue event =
        trace_slice(span.name, "span", track(span.replica, span.rank, span.lane, true),
                    shift_ns_ + span.start_ns, shift_ns_ + span.end_ns);
    JsonValue arguments{JsonObject()};
    arguments.add("iteration", JsonValue(span.iteration));
    if (!span.group.empty()) arguments.add("group", JsonValue(span.group));
    event.add("args", std::move(arguments));
    events_.add(event);
  }

  // From the last nanosecond of the producer to the start of the consumer.
  void write_message(const TraceMessage& message) {
    const Slice* from = find(message, message.from_stage);
    const Slice* to = find(message, message.to_stage);
    if (from == nullptr || to == nullptr) return;
    JsonValue arguments{JsonObject()};
    if (message.bytes > 0) arguments.add("bytes", JsonValue(message.bytes));
    arguments.add("sent_ns", JsonValue(message.send.match_ns));
    arguments.add("arrival_ns", JsonValue(message.receive.done_ns));
    const bool forward = message.kind == Kind::kForward;
    events_.add_arrow(forward ? "activation" : "gradient", arrows_++, from->track,
                      std::max(from->start_ns, from->end_ns - 1), to->track, to->start_ns,
                      std::move(arguments));
  }

  // A B and an I take and send the same messages.
  static Slot slot_of(Kind kind) {
    if (kind == Kind::kForward) return Slot::kForward;
    return kind == Kind::kWeightGradient ? Slot::kWeight : Slot::kBackward;
  }

  // The task of `stage` that sends or takes the message.
  const Slice* find(const TraceMessage& message, int stage) const {
    const auto found = slices_.find(
        {message.replica, message.lane, stage, slot_of(message.kind), message.microbatch});
    return found == slices_.end() ? nullptr : &found->second;
  }

  const TraceHeader& header_;
  TraceEvents events_;
  std::map<Key, Slice> slices_;  // of this iteration
  std::int64_t shift_ns_ = 0;    // to its origin
  std::int64_t next_origin_ns_ = 0;
  std::int64_t last_end_ns_ = 0;
  std::int64_t arrows_ = 0;
};

}  // namespace

Result<TraceTimeline> trace_timeline(TraceSource& source, std::optional<int> only) {
  TraceTimelineWriter writer(source.header());
  TraceTimeline made;
  TraceStep step;
  while (true) {
    const Result<bool> more = source.next(&step);
    if (!more.ok()) return more.error();
    if (!*more) break;
    if (only && step.iteration != *only) continue;
    writer.write(step);
    ++made.iterations;
    made.tasks += static_cast<std::int64_t>(step.tasks.size());
  }
  if (only && made.iterations == 0) {
    return Error{"--iteration: the trace holds no iteration " + std::to_string(*only)};
  }
  made.text = writer.finish();
  return made;
}

}  // namespace rrfp
