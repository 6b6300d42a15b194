#include "traces/kineto_event.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

#include "traces/profile.h"

namespace rrfp {

namespace {

struct CategoryWord {
  std::string_view word;
  KinetoSort sort;
};

constexpr std::array kCategories = {
    CategoryWord{"kernel", KinetoSort::kKernel},
    CategoryWord{"Kernel", KinetoSort::kKernel},
    CategoryWord{"cuda_runtime", KinetoSort::kLaunch},
    CategoryWord{"cuda_driver", KinetoSort::kLaunch},
    CategoryWord{"hip_runtime", KinetoSort::kLaunch},
    CategoryWord{"Runtime", KinetoSort::kLaunch},
    CategoryWord{"user_annotation", KinetoSort::kAnnotation},
    CategoryWord{"cpu_op", KinetoSort::kAnnotation},
    CategoryWord{"Operator", KinetoSort::kAnnotation},
    CategoryWord{"python_function", KinetoSort::kAnnotation},
    CategoryWord{"gpu_user_annotation", KinetoSort::kDeviceAnnotation},
    CategoryWord{"Trace", KinetoSort::kWhole}};

KinetoSort sort_of(std::string_view category) {
  for (const CategoryWord& known : kCategories) {
    if (known.word == category) return known.sort;
  }
  return KinetoSort::kOther;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Forms that no profiler is known to write ("1.5e3").
std::optional<std::int64_t> unusual_microseconds(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const long double value = std::strtold(copy.c_str(), &end) * 1000;
  if (copy.empty() || end != copy.c_str() + copy.size() || !(std::fabs(value) < kMostProfileNs)) {
    return std::nullopt;
  }
  return std::llround(value);
}

template <typename T>
std::optional<T> whole(std::string_view value) {
  const std::string_view text = unquoted(value);
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// The times of an event; its problem where they cannot be.
void read_times(std::string_view start, std::string_view length, KinetoEvent* event) {
  if (start.empty() || length.empty()) {
    event->problem = start.empty() ? "ts is missing" : "dur is missing";
    return;
  }
  const std::optional<std::int64_t> start_ns = microseconds_to_ns(start);
  const std::optional<std::int64_t> length_ns = microseconds_to_ns(length);
  if (!start_ns || !length_ns) {
    event->problem = start_ns ? "dur is no number of microseconds, or too large"
                              : "ts is no number of microseconds, or too large";
  } else if (*length_ns > kMostLengthNs) {
    event->problem = "dur is too large for any clock";
  } else if (*length_ns < 0) {
    event->problem = "dur is negative";
  } else if (*start_ns == 0 && *length_ns == 0) {
    event->problem = "ts and dur are 0: it was not collected";
  } else {
    event->start_ns = *start_ns;
    event->length_ns = *length_ns;
  }
}

}  // namespace

std::optional<std::int64_t> microseconds_to_ns(std::string_view value) {
  const std::string_view text = unquoted(value);
  std::size_t at = 0;
  const bool negative = text.starts_with('-');
  if (negative) ++at;
  const std::size_t first = at;
  std::int64_t ns = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    ns = ns * 10 + (text[at] - '0');
    if (ns > kMostProfileNs / 1000) return std::nullopt;
  }
  if (at == first) return unusual_microseconds(text);
  ns *= 1000;
  if (at < text.size() && text[at] == '.') {
    ++at;
    std::int64_t unit = 100;
    for (; at < text.size() && is_digit(text[at]) && unit > 0; ++at, unit /= 10) {
      ns += (text[at] - '0') * unit;
    }
    if (at < text.size() && text[at] >= '5' && text[at] <= '9') ++ns;
    while (at < text.size() && is_digit(text[at])) ++at;
  }
  if (at != text.size()) return unusual_microseconds(text);
  return negative ? -ns : ns;
}

std::optional<std::uint64_t> whole_u64(std::string_view value) {
  return whole<std::uint64_t>(value);
}
std::optional<std::int64_t> whole_i64(std::string_view value) { return whole<std::int64_t>(value); }

KinetoEvent read_kineto_event(std::span<const LooseMember> members) {
  KinetoEvent event;
  std::string_view phase;
  std::string_view category;
  std::string_view start;
  std::string_view length;
  std::string_view correlation;
  for (const LooseMember& member : members) {
    if (member.nested) {
      if (member.key == "correlation") correlation = member.value;
      if (member.key == "Process Group Name") event.group_name = unquoted(member.value);
      if (member.key == "Process Group Ranks") event.group_ranks = unquoted(member.value);
      continue;
    }
    if (member.key == "ph") phase = unquoted(member.value);
    if (member.key == "cat") category = unquoted(member.value);
    if (member.key == "name") event.name = member.value;
    if (member.key == "pid") event.process = unquoted(member.value);
    if (member.key == "tid") event.thread = unquoted(member.value);
    if (member.key == "ts") start = member.value;
    if (member.key == "dur") length = member.value;
  }
  if (phase != "X") return event;
  event.sort = sort_of(category);
  if (event.sort == KinetoSort::kOther) return event;
  read_times(start, length, &event);
  if (!correlation.empty()) event.correlation = whole_u64(correlation);
  const bool needs_correlation =
      event.sort == KinetoSort::kKernel || event.sort == KinetoSort::kLaunch;
  if (needs_correlation && event.problem == nullptr && !correlation.empty() && !event.correlation) {
    event.problem = "correlation is no whole number below 2^64";
  }
  return event;
}

}  // namespace rrfp
