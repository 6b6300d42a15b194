// rrfp replay: a recorded job run again, and what else could have been made of
// its durations.
#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>

#include "experiments/command.h"
#include "experiments/input_file.h"
#include "experiments/replay_report.h"
#include "experiments/trace_progress.h"
#include "experiments/what_if.h"
#include "scheduler_core/schedule.h"
#include "sim/replay_analysis.h"
#include "traces/case_words.h"
#include "traces/json_writer.h"
#include "traces/trace_source.h"

namespace rrfp {

namespace {

constexpr std::array kOptions = {
    OptionRow{"what-if", "", "also run other policies and networks on the same durations"},
    OptionRow{"hint", "NAME,...", "what-if: recorded, or schedules by name (default recorded)"},
    OptionRow{"window", "N,...", "what-if: 1 is a fixed order, none readiness-first (default 1)"},
    OptionRow{"anticipation", "X,...",
              "what-if: off, on (750/500) or REACH/GRACE in permille (default off)"},
    OptionRow{"arrange", "WORD,...", "what-if: given, ascending, hill (default given)"},
    OptionRow{"network", "MODE,...", "what-if: eager, rendezvous, launch-queue (default eager)"},
    OptionRow{"budget", "N,...",
              "what-if: activations a rank may hold; or none, recorded, even, a schedule's name"},
    OptionRow{"message-us", "N",
              "what-if: a transfer in launch-queue mode (default: the trace's median)"},
    OptionRow{"split-fraction", "F",
              "what-if: assume that W is this share of each recorded B (default: no split)"},
    OptionRow{"steps", "", "also a line per iteration"},
    OptionRow{"json", "", "print everything as rrfp.replay/1"},
};

constexpr std::array<std::string_view, 7> kAbout = {"hint",    "window", "anticipation", "arrange",
                                                    "network", "budget", "message-us"};

Result<std::vector<std::string>> words_of(const Options& options, std::string_view name,
                                          std::string_view otherwise) {
  Result<std::vector<std::string>> words = options.list(name);
  if (words.ok() && words->empty()) return std::vector<std::string>{std::string(otherwise)};
  return words;
}

Error wrong(std::string_view option, const std::string& found, const std::string& expected) {
  return Error{"--" + std::string(option) + ": found \"" + found + "\"; expected " + expected};
}

/// A whole number from `least` to a billion.
std::optional<int> small_number(const std::string& word, int least) {
  const std::optional<std::int64_t> number = whole_number(word, least, 1'000'000'000);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

Result<std::vector<int>> windows_of(const Options& options) {
  const Result<std::vector<std::string>> words = words_of(options, "window", "1");
  if (!words.ok()) return words.error();
  std::vector<int> windows;
  for (const std::string& word : *words) {
    const std::optional<int> number = word == "none" ? kNoWindow : small_number(word, 1);
    if (!number) return wrong("window", word, "none or a whole number from 1");
    windows.push_back(*number);
  }
  return windows;
}

Result<std::vector<std::optional<Anticipation>>> anticipations_of(const Options& options) {
  const Result<std::vector<std::string>> words = words_of(options, "anticipation", "off");
  if (!words.ok()) return words.error();
  std::vector<std::optional<Anticipation>> anticipations;
  for (const std::string& word : *words) {
    if (word == "off") {
      anticipations.emplace_back(std::nullopt);
    } else if (word == "on") {
      anticipations.emplace_back(Anticipation{750, 500});
    } else {
      const std::size_t slash = word.find('/');
      const auto reach = small_number(word.substr(0, slash), 0);
      const auto grace =
          slash == word.npos ? std::nullopt : small_number(word.substr(slash + 1), 0);
      if (!reach || !grace) {
        return wrong("anticipation", word, "off, on or REACH/GRACE in permille");
      }
      anticipations.emplace_back(Anticipation{*reach, *grace});
    }
  }
  return anticipations;
}

constexpr std::array<std::string_view, 3> kArrangementWords = {"given", "ascending", "hill"};
constexpr std::array kArrangementValues = {Arrangement::kGiven, Arrangement::kAscending,
                                           Arrangement::kHill};

template <typename Value, std::size_t kSize>
Result<std::vector<Value>> values_of(const Options& options, std::string_view name,
                                     const std::array<std::string_view, kSize>& words,
                                     const std::array<Value, kSize>& values) {
  const Result<std::vector<std::string>> given = words_of(options, name, words.front());
  if (!given.ok()) return given.error();
  std::vector<Value> chosen;
  for (const std::string& word : *given) {
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) return not_one_of("--" + std::string(name), word, words);
    chosen.push_back(values[static_cast<std::size_t>(found - words.begin())]);
  }
  return chosen;
}

std::vector<std::string_view> hint_words() {
  std::vector<std::string_view> words = {kRecordedHint};
  for (const ScheduleEntry& entry : schedule_table()) words.push_back(entry.name);
  return words;
}

Result<WhatIfBudget> budget_of(const Options& options) {
  WhatIfBudget budget;
  const Result<std::vector<std::string>> words = words_of(options, "budget", "recorded");
  if (!words.ok()) return words.error();
  const std::string& first = words->front();
  if (words->size() == 1 && first == "recorded") return budget;
  if (words->size() == 1 && first == "even") {
    budget.kind = WhatIfBudget::Kind::kEven;
    return budget;
  }
  if (words->size() == 1 && first == "none") {
    budget.kind = WhatIfBudget::Kind::kNone;
    return budget;
  }
  budget.kind = WhatIfBudget::Kind::kNumbers;
  for (const std::string& word : *words) {
    if (const std::optional<int> number = small_number(word, 1)) {
      budget.numbers.push_back(*number);
      continue;
    }
    const std::vector<std::string_view> known = hint_words();
    if (words->size() > 1 || std::find(known.begin(), known.end(), word) == known.end()) {
      return wrong(
          "budget", word,
          "none, recorded, even, the name of a schedule, or a whole number from 1, one for all "
          "ranks or each");
    }
    budget.kind = WhatIfBudget::Kind::kSchedule;
    budget.schedule = word;
  }
  return budget;
}

/// All that the options ask for, the recorded run first.
Result<std::vector<WhatIfVariant>> variants_of(const Options& options) {
  const Result<std::vector<std::string>> hints = words_of(options, "hint", kRecordedHint);
  const auto windows = windows_of(options);
  const auto anticipations = anticipations_of(options);
  const auto arrangements = values_of(options, "arrange", kArrangementWords, kArrangementValues);
  constexpr std::array<std::string_view, 3> kModeWords = {kModes[0].word, kModes[1].word,
                                                          kModes[2].word};
  constexpr std::array kModeValues = {kModes[0].value, kModes[1].value, kModes[2].value};
  const auto networks = values_of(options, "network", kModeWords, kModeValues);
  if (!hints.ok()) return hints.error();
  if (!windows.ok()) return windows.error();
  if (!anticipations.ok()) return anticipations.error();
  if (!arrangements.ok()) return arrangements.error();
  if (!networks.ok()) return networks.error();
  const std::vector<std::string_view> known = hint_words();
  std::vector<WhatIfVariant> variants = {WhatIfVariant{}};
  for (const std::string& hint : *hints) {
    if (std::find(known.begin(), known.end(), hint) == known.end()) {
      return not_one_of("--hint", hint, known);
    }
    for (const NetworkMode network : *networks) {
      for (const int window : *windows) {
        // Only eager links run an order that is not fixed, and a fixed order
        // has nothing to wait for: such combinations say nothing new.
        if (network != NetworkMode::kEager && window != 1) continue;
        for (const std::optional<Anticipation>& anticipation : *anticipations) {
          if (anticipation && window == 1) continue;
          for (const Arrangement arrangement : *arrangements) {
            const WhatIfVariant variant{hint, window, anticipation, arrangement, network};
            if (variant != variants.front()) variants.push_back(variant);
          }
        }
      }
    }
  }
  return variants;
}

Result<WhatIfOptions> what_if_options(const Options& options, bool asked) {
  WhatIfOptions what_if;
  const Result<std::optional<double>> share = options.number("split-fraction", 0);
  if (!share.ok()) return share.error();
  what_if.split_fraction = *share;
  if (*share && !(**share > 0 && **share < 1)) {
    return Error{"--split-fraction: expected a share of B above 0 and below 1"};
  }
  Result<WhatIfBudget> budget = budget_of(options);
  if (!budget.ok()) return budget.error();
  what_if.budget = *std::move(budget);
  bool grid = false;
  for (const std::string_view name : {"hint", "window", "anticipation", "arrange", "network"}) {
    grid = grid || options.text(name).has_value();
  }
  if (!asked || grid) {
    Result<std::vector<WhatIfVariant>> variants = variants_of(options);
    if (!variants.ok()) return variants.error();
    what_if.variants = *std::move(variants);
  } else {
    what_if.variants = usual_variants(share->has_value());
  }
  return what_if;
}

/// What a transfer took, as a rule: the receivers' medians.
std::int64_t usual_transfer_ns(const ReplayAnalysis& analysis) {
  std::int64_t sum_ns = 0;
  std::int64_t kinds = 0;
  for (const int type : {ReplayTypes::kMessages + 1, ReplayTypes::kMessages + 3}) {
    if (analysis.operations[static_cast<std::size_t>(type)] == 0) continue;
    sum_ns += analysis.ideal_ns[static_cast<std::size_t>(type)];
    ++kinds;
  }
  return kinds == 0 ? 0 : sum_ns / kinds;
}

Error in_file(const std::string& path, const Error& error) {
  return error.message.starts_with(path) ? error : Error{path + ": " + error.message};
}

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const Result<std::string> path = options.operand("TRACE");
  if (!path.ok()) return path.error();
  bool asked = options.flag("what-if") || options.text("split-fraction").has_value();
  for (const std::string_view name : kAbout) asked = asked || options.text(name).has_value();
  Result<WhatIfOptions> what_if_asked = what_if_options(options, asked);
  if (!what_if_asked.ok()) return what_if_asked.error();
  const Result<std::optional<double>> message_us = options.number("message-us", 0);
  if (!message_us.ok()) return message_us.error();
  if (*message_us && **message_us > 1e9) return Error{"--message-us: expected at most 1000000000"};

  ReplayReport report;
  report.file = *path;
  report.options = *std::move(what_if_asked);
  std::optional<OpenedTrace> trace;
  {
    const Result<TraceFormat> format = trace_format(*path);
    if (!format.ok()) return explain_kind(format.error(), *path, kTraceKinds);
    TraceProgress progress(terminal.err, *path, *format == TraceFormat::kNative ? 3 : 1);
    Result<OpenedTrace> opened = open_input_trace(*path, progress.callback());
    if (!opened.ok()) return opened.error();
    Result<ReplayAnalysis> analysis = analyse_trace(*opened->source);
    if (!analysis.ok()) return in_file(*path, analysis.error());
    report.analysis = *std::move(analysis);
    report.options.message_ns =
        *message_us ? std::llround(**message_us * 1e3) : usual_transfer_ns(report.analysis);
    Result<WhatIf> tried = what_if(*opened->source, report.options);
    if (tried.ok()) {
      report.what_if = *std::move(tried);
    } else if (asked) {
      return in_file(*path, tried.error());
    } else {
      report.no_what_if = tried.error().message;
    }
    trace = *std::move(opened);
  }
  if (options.flag("json")) {
    terminal.out << to_text(replay_to_json(report), JsonLayout::kReadable) << "\n";
    return ExitStatus::kDone;
  }
  terminal.out << describe_replay(trace->source->header(), report);
  if (options.flag("steps")) terminal.out << "\n" << describe_steps(report.analysis);
  if (!report.what_if) {
    terminal.out << "\nno causes of idle time: " << report.no_what_if << "\n";
    return ExitStatus::kDone;
  }
  terminal.out << "\n" << describe_causes(*report.what_if);
  if (asked) terminal.out << "\n" << describe_what_if(report);
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kReplayCommand;
const Command kReplayCommand = {
    "replay",
    "runs a recorded job again: what made it slow, and what if",
    "TRACE",
    "TRACE is a native trace (rrfp.trace/1), plain, .gz or .zst, or a straggler CSV.\n"
    "Every option that says what-if asks for one; all combinations of those given are run,\n"
    "with --what-if alone a usual choice. Policies and networks meet the same durations and\n"
    "transfers; memory is counted in activations, and rows that need another amount say so. A "
    "budget is\n"
    "recorded (default): what the recorded order holds, rank by rank; even: on each rank what it\n"
    "holds on its fullest; what a schedule holds, by name; or numbers.",
    "rrfp replay experiments/noisy-1f1b.trace.jsonl.zst --what-if",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
