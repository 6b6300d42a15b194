#include "experiments/trace_events.h"

#include <array>
#include <cstdlib>

#include "traces/json_writer.h"

namespace rrfp {

std::string_view category_of(Kind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"forward", "backward", "input gradient",
                                                      "weight gradient"};
  return kNames[static_cast<std::size_t>(kind)];
}

JsonValue microseconds(std::int64_t ns) {
  std::string fraction = std::to_string(std::abs(ns % 1000));
  fraction.insert(0, 3 - fraction.size(), '0');
  const std::string sign = ns < 0 && ns > -1000 ? "-" : "";
  return JsonValue(Decimal{sign + std::to_string(ns / 1000) + "." + fraction});
}

JsonValue trace_event(std::string_view phase, std::string_view name, const TraceTrack& track) {
  JsonValue out{JsonObject()};
  out.add("ph", JsonValue(phase));
  out.add("name", JsonValue(name));
  out.add("pid", JsonValue(track.process));
  out.add("tid", JsonValue(track.thread));
  return out;
}

JsonValue trace_slice(std::string_view name, std::string_view category, const TraceTrack& track,
                      std::int64_t start_ns, std::int64_t end_ns) {
  JsonValue slice = trace_event("X", name, track);
  slice.add("cat", JsonValue(category));
  slice.add("ts", microseconds(start_ns));
  slice.add("dur", microseconds(end_ns - start_ns));
  return slice;
}

TraceEvents::TraceEvents(const JsonValue& other_data)
    : text_("{\"displayTimeUnit\":\"ns\",\"otherData\":" +
            to_text(other_data, JsonLayout::kCompact) + ",\"traceEvents\":[\n") {}

void TraceEvents::add(const JsonValue& event) {
  if (!first_) text_ += ",\n";
  first_ = false;
  text_ += to_text(event, JsonLayout::kCompact);
}

void TraceEvents::add_name(std::string_view what, const TraceTrack& track, std::string_view key,
                           JsonValue value) {
  JsonValue arguments{JsonObject()};
  arguments.add(key, std::move(value));
  JsonValue named = trace_event("M", what, track);
  named.add("args", std::move(arguments));
  add(named);
}

void TraceEvents::name_process(int process, const std::string& name) {
  add_name("process_name", {process, 0}, "name", JsonValue(name));
}

void TraceEvents::name_track(const TraceTrack& track, const std::string& name) {
  add_name("thread_name", track, "name", JsonValue(name));
  add_name("thread_sort_index", track, "sort_index", JsonValue(track.thread));
}

void TraceEvents::add_arrow(std::string_view name, std::int64_t number, const TraceTrack& from,
                            std::int64_t from_ns, const TraceTrack& to, std::int64_t to_ns,
                            JsonValue arguments) {
  JsonValue begin = trace_event("s", name, from);
  begin.add("cat", JsonValue("message"));
  begin.add("id", JsonValue(number));
  begin.add("ts", microseconds(from_ns));
  begin.add("args", std::move(arguments));
  add(begin);
  JsonValue end = trace_event("f", name, to);
  end.add("cat", JsonValue("message"));
  end.add("id", JsonValue(number));
  end.add("ts", microseconds(to_ns));
  end.add("bp", JsonValue("e"));
  add(end);
}

std::string TraceEvents::finish() { return std::move(text_) + "\n]}\n"; }

}  // namespace rrfp
