#include "traces/megatron_log.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace rrfp {

namespace {

constexpr std::string_view kElapsed = "elapsed time per iteration (ms):";
constexpr std::string_view kTimers = "(min, max) time across ranks (ms):";
/// A timer's name is followed by dots up to a column; so many tell it apart
/// from a sentence.
constexpr std::string_view kDots = "...";
/// 11 days: longer is a mistake, and sums stay far within int64.
constexpr double kMostMs = 1e9;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// A time in ns; none where the text is no number of at least 0.
std::optional<std::int64_t> ns_of(std::string_view text) {
  text = trimmed(text);
  double ms = 0;
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (failed != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  if (!(ms >= 0 && ms <= kMostMs)) return std::nullopt;  // nan too
  return std::llround(ms * 1e6);
}

class LogReader {
 public:
  LogReader(LineSource lines, MegatronLogImport* imported)
      : lines_(std::move(lines)), imported_(*imported) {}

  Result<void> read() {
    std::string_view line;
    while (true) {
      const Result<bool> more = lines_.next(&line);
      if (!more.ok()) return more.error();
      if (!*more) return {};
      ++imported_.lines;
      if (line.find(kElapsed) != line.npos) {
        in_timers_ = false;
        read_iteration(line);
      } else if (line.find(kTimers) != line.npos) {
        in_timers_ = true;
      } else if (in_timers_) {
        in_timers_ = read_timer(line);
      }
    }
  }

 private:
  void drop(const std::string& reason) {
    imported_.dropped.add(reason, "line " + std::to_string(lines_.line_number()));
  }

  void add_span(const std::string& name, std::int64_t length_ns) {
    TraceSpan span;
    span.iteration = iteration_;
    span.name = name;
    span.end_ns = length_ns;
    imported_.records.push_back(std::move(span));
  }

  void read_iteration(std::string_view line) {
    usable_ = false;
    const std::optional<int> number = iteration_number(line);
    if (!number) return drop("an iteration without its number");
    std::string_view value = line.substr(line.find(kElapsed) + kElapsed.size());
    value = value.substr(0, value.find('|'));
    const std::optional<std::int64_t> length_ns = ns_of(value);
    if (!length_ns) return drop("an iteration whose time is no number of at least 0");
    if (!seen_.insert(*number).second) return drop("an iteration that was logged before");
    usable_ = true;
    iteration_ = *number;
    ++imported_.iterations;
    add_span("iteration", *length_ns);
  }

  /// "iteration   10/   500".
  static std::optional<int> iteration_number(std::string_view line) {
    constexpr std::string_view kWord = "iteration ";
    const std::size_t word = line.find(kWord);
    if (word == line.npos) return std::nullopt;
    std::string_view rest = line.substr(word + kWord.size());
    const std::size_t slash = rest.find('/');
    if (slash == rest.npos) return std::nullopt;
    rest = trimmed(rest.substr(0, slash));
    int number = 0;
    const auto [stop, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (failed != std::errc{} || stop != rest.data() + rest.size() || number < 0) {
      return std::nullopt;
    }
    return number;
  }

  /// False where the line is no timer: then the block is over.
  bool read_timer(std::string_view line) {
    const std::size_t dots = line.find(kDots);
    const std::size_t colon = line.rfind(':');
    if (dots == line.npos) return false;
    if (colon == line.npos || colon < dots) {
      drop("a timer without its times");
      return true;
    }
    std::string_view before = trimmed(line.substr(0, dots));
    before.remove_prefix(before.find_last_of(" \t") + 1);  // 0 where there is none
    const std::string name(before);
    std::string_view times = trimmed(line.substr(colon + 1));
    if (name.empty()) {
      drop("a timer without a name");
      return true;
    }
    const bool pair = times.starts_with("(") && times.ends_with(")");
    if (pair) times = times.substr(1, times.size() - 2);
    const std::size_t comma = times.find(',');
    const auto least_ns = ns_of(times.substr(0, comma));
    const auto most_ns = comma == times.npos ? least_ns : ns_of(times.substr(comma + 1));
    if (!pair || comma == times.npos || !least_ns || !most_ns || *least_ns > *most_ns) {
      drop("a timer whose times are not (min, max), two numbers of at least 0");
    } else if (!usable_) {
      drop("a timer without an iteration before it that could be used");
    } else {
      ++imported_.timers;
      add_span(name + " min", *least_ns);
      add_span(name + " max", *most_ns);
    }
    return true;
  }

  LineSource lines_;
  MegatronLogImport& imported_;
  std::set<int> seen_;
  int iteration_ = 0;
  bool usable_ = false;  ///< the last iteration line
  bool in_timers_ = false;
};

}  // namespace

Result<MegatronLogImport> import_megatron_log(const std::string& path, ReadProgress progress) {
  Result<LineSource> lines = LineSource::open(path, std::move(progress));
  if (!lines.ok()) return lines.error();
  ProgramSpec spec;
  spec.ranks = 1;
  spec.microbatches = 1;
  spec.stages.resize(1);
  Result<Program> program = Program::create(std::move(spec));
  if (!program.ok()) return program.error();
  MegatronLogImport imported{TraceHeader(*std::move(program)), {}, 0, 0, 0, {}};
  imported.header.versions = {{"from", "Megatron-LM log"}};
  const Result<void> read = LogReader(*std::move(lines), &imported).read();
  if (!read.ok()) return read.error();
  if (imported.iterations == 0) {
    return Error{path + ": holds no usable line with \"" + std::string(kElapsed) + "\"" +
                 (imported.dropped.total() == 0
                      ? ""
                      : "; the first that was dropped: " + imported.dropped.reasons[0].first +
                            ", " + imported.dropped.reasons[0].reason)};
  }
  return imported;
}

}  // namespace rrfp
