#include "experiments/profile_report.h"

#include <algorithm>
#include <filesystem>

#include "experiments/display_units.h"
#include "experiments/text_list.h"
#include "experiments/text_table.h"
#include "experiments/trace_report.h"

namespace rrfp {

namespace {

std::string describe_ranks(const ProfileReport& report) {
  TextTable table({"file", "rank", "rank from", "times from", "tasks", "ends of messages", "spans",
                   "kernels", "of it used"});
  for (const std::size_t words : {std::size_t{2}, std::size_t{3}}) table.align_left(words);
  for (const ProfileReport::Rank& rank : report.ranks) {
    const RankRecording& recording = rank.recording;
    table.add({std::filesystem::path(recording.file).filename().string(),
               std::to_string(recording.rank), recording.rank_from,
               recording.on_device ? "kernels" : "annotations", std::to_string(rank.tasks),
               std::to_string(rank.message_ends), std::to_string(rank.spans),
               std::to_string(recording.kernels), std::to_string(recording.kernels_used)});
  }
  return table.text();
}

/// What holds for some of the ranks, counted.
std::string describe_conclusions(const ProfileReport& report) {
  std::int64_t without_steps = 0;
  std::int64_t on_cpu = 0;
  std::int64_t counted_microbatches = 0;
  std::int64_t other_threads = 0;
  std::int64_t outside = 0;
  std::int64_t without_launch = 0;
  for (const ProfileReport::Rank& rank : report.ranks) {
    without_steps += rank.recording.has_steps ? 0 : 1;
    on_cpu += rank.recording.on_device ? 0 : 1;
    counted_microbatches += rank.recording.counted_microbatches ? 1 : 0;
    other_threads += rank.recording.kernels_of_other_threads;
    outside += rank.recording.kernels_outside;
    without_launch += rank.recording.kernels_without_launch;
  }
  std::string text;
  const auto line = [&](std::int64_t count, const std::string& of, const std::string& what) {
    if (count > 0) text += counted(count, of) + ": " + what + "\n";
  };
  line(on_cpu, "rank", "no task has a kernel, so the annotations themselves give the times");
  line(without_steps, "rank", "no ProfilerStep: each repetition of a task begins an iteration");
  line(counted_microbatches, "rank", "no microbatch in the names: they are counted in order");
  line(other_threads, "kernel",
       "launched by another thread (as autograd does), given to the one backward that was open");
  line(outside, "kernel", "launched outside every annotation of the pipeline, not used");
  line(without_launch, "kernel", "without a launch in the file, not used");
  for (const std::string& note : report.notes) text += note + "\n";
  return text;
}

std::string describe_clocks(const ProfileReport& report) {
  std::int64_t worst_ns = 0;
  std::int64_t farthest_ns = 0;
  std::int64_t untied = 0;
  for (const ProfileReport::Rank& rank : report.ranks) {
    if (!rank.clock_error_ns) ++untied;
    worst_ns = std::max(worst_ns, rank.clock_error_ns.value_or(0));
    farthest_ns = std::max(farthest_ns,
                           rank.clock_offset_ns < 0 ? -rank.clock_offset_ns : rank.clock_offset_ns);
  }
  if (report.ranks.size() == 1) return "";
  std::string text;
  if (untied < static_cast<std::int64_t>(report.ranks.size())) {
    text = report.clocks_moved
               ? "clocks: moved by up to " + time_with_unit(farthest_ns) +
                     ", so that no message ends before both sides began"
               : std::string("clocks: as the files state, which agrees with all messages");
    text += "; right to within " + time_with_unit(worst_ns) + "\n";
  }
  if (untied > 0) {
    text += "clocks of " + counted(untied, "rank") +
            ": as the files state, error unknown, for no message ties them to lower "
            "ranks\n";
  }
  if (report.clocks_contradiction_ns > 0) {
    text += "messages contradict one another by up to " +
            time_with_unit(report.clocks_contradiction_ns) + " (drift, or wrong pairs)\n";
  }
  if (report.early_ends > 0) {
    text += counted(report.early_ends, "message") +
            " ends before both sides had begun: its transfer counts as 0\n";
  }
  return text;
}

// Where most were dropped, which is seldom what a job has.
std::string warn_of_messages(const ProfileReport& report) {
  const std::int64_t used = 2 * report.messages;
  if (report.message_ends == 0 || used >= report.message_ends / 2) return "";
  return "warning: " + (used == 0 ? "none" : std::to_string(used)) + " of " +
         counted(report.message_ends, "send") +
         " and receives could be used (what was dropped, below, says why), so the trace knows " +
         (used == 0 ? "nothing" : "little") +
         " of messages: do --dp and --tp, or which files were given, fit the job?" +
         (report.width_by_messages.empty() ? "" : " By messages, " + report.width_by_messages) +
         "\n";
}

}  // namespace

std::string describe_profile_import(const ProfileReport& report) {
  std::int64_t events = 0;
  for (const ProfileReport::Rank& rank : report.ranks) events += rank.recording.events;
  std::string text = warn_of_messages(report) + "read " + counted(events, "event") + "; " +
                     counted(report.iterations, "iteration") + ", " +
                     counted(report.messages, "message") + "\n" + describe_ranks(report) +
                     describe_conclusions(report) + describe_clocks(report);
  for (const ProfileReport::Rank& rank : report.ranks) {
    if (rank.recording.cut.empty()) continue;
    text += rank.recording.file + " was cut: it " + rank.recording.cut +
            "; the events before that are used\n";
  }
  return text + describe_dropped(report.dropped, "event");
}

}  // namespace rrfp
