// A file in the trace event format that Perfetto and Chrome read, one event
// after the other: a whole run as one JSON tree would take several times the
// memory of its text.
//
// Times are microseconds with three decimals, that is, exact to the nanosecond.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler_core/task.h"
#include "traces/json_value.h"

namespace rrfp {

/// One line of a timeline: a process is a group of them.
struct TraceTrack {
  int process = 0;
  int thread = 0;
};

/// "forward", by which the viewer groups and colours.
std::string_view category_of(Kind kind);
/// As the format has times.
JsonValue microseconds(std::int64_t ns);

/// An event with phase, name and track; the caller adds the rest.
JsonValue trace_event(std::string_view phase, std::string_view name, const TraceTrack& track);
/// A slice from start to end.
JsonValue trace_slice(std::string_view name, std::string_view category, const TraceTrack& track,
                      std::int64_t start_ns, std::int64_t end_ns);

class TraceEvents {
 public:
  /// `other_data`: what the file says of itself.
  explicit TraceEvents(const JsonValue& other_data);

  void add(const JsonValue& event);
  void name_process(int process, const std::string& name);
  /// Tracks of a process stand in the order of their numbers.
  void name_track(const TraceTrack& track, const std::string& name);
  /// An arrow; its ends bind to the slices around them.
  void add_arrow(std::string_view name, std::int64_t number, const TraceTrack& from,
                 std::int64_t from_ns, const TraceTrack& to, std::int64_t to_ns,
                 JsonValue arguments);

  /// The text of the file. Comes last.
  std::string finish();

 private:
  void add_name(std::string_view what, const TraceTrack& track, std::string_view key,
                JsonValue value);

  std::string text_;
  bool first_ = true;
};

}  // namespace rrfp
