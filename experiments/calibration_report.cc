#include "experiments/calibration_report.h"

#include <algorithm>

#include "executor/calibration_file.h"
#include "experiments/display_units.h"
#include "experiments/file_kind.h"
#include "experiments/text_table.h"

namespace rrfp {

namespace {

std::string short_time(std::int64_t ns) {
  return ns < 10'000 ? std::to_string(ns) + " ns" : std::to_string(ns / 1000) + " us";
}

std::string row(const std::string& what, std::int64_t ns, const std::string& rest) {
  return "  " + what + std::string(18 - what.size(), ' ') + std::to_string(ns) + " ns" + rest +
         "\n";
}

// "4.3 %".
std::string slower_by(const DeviceTimes& times) {
  return fixed(static_cast<double>(times.contention_permille - 1000) / 10, 1) + " %";
}

std::string table_of(const std::vector<CalibratedLink>& links) {
  TextTable table({"  link, ranks", "lane", "latency ns", "bytes per us"});
  for (const CalibratedLink& link : links) {
    table.add({"  " + std::to_string(link.from_rank) + " -> " + std::to_string(link.to_rank),
               link.lane == CalibratedLink::kAllLanes ? "all" : std::to_string(link.lane),
               std::to_string(link.latency_ns), std::to_string(link.bytes_per_us)});
  }
  return table.text();
}

// "1200 ns", or "1200 - 1500 ns" where links differ.
std::string range_of(const std::vector<CalibratedLink>& links, std::int64_t CalibratedLink::*figure,
                     const std::string& unit) {
  const auto [least, most] =
      std::minmax_element(links.begin(), links.end(),
                          [figure](const auto& a, const auto& b) { return a.*figure < b.*figure; });
  const std::string from = std::to_string((*least).*figure);
  const std::string to = std::to_string((*most).*figure);
  return (from == to ? from : from + " - " + to) + " " + unit;
}

}  // namespace

Result<std::optional<Calibration>> calibration_of(const Options& options) {
  const std::optional<std::string> path = options.text(kCalibrationRow.name);
  if (!path) return std::optional<Calibration>();
  Result<Calibration> read = read_calibration_file(*path);
  if (!read.ok()) {
    constexpr FileKind kTaken[] = {FileKind::kCalibration};
    return explain_kind(read.error(), *path, kTaken);
  }
  return std::optional<Calibration>(std::move(*read));
}

std::string describe_calibration(const Calibration& calibration, const std::string& transport) {
  std::string text = "with " + std::to_string(calibration.workers) + " workers over " + transport +
                     ":\n" + row("a task takes", calibration.task_extra_ns, " longer") +
                     row("a message takes", calibration.message_extra_ns,
                         calibration.links.empty() ? " longer" : " longer, beside its link") +
                     row("a timer is seen", calibration.timer_p50_ns,
                         " late (p50), " + std::to_string(calibration.timer_p99_ns) + " ns (p99)") +
                     "  iterations differ in the first two together by " +
                     fixed(static_cast<double>(calibration.spread_permille) / 10, 1) +
                     " % of a task\n";
  if (!calibration.device) return text;
  const DeviceTimes& times = calibration.device->times;
  text += "on " + calibration.device->about + ", medians:\n" +
          row("a launch takes", times.launch_ns, " of the host") +
          row("a flag takes", times.flag_ns, " from being left in an idle stream to being seen") +
          row("an empty kernel", times.kernel_ns, "") + "  partitions slow each other by " +
          slower_by(times) + ", which the lengths of tasks hold already\n";
  return text + (calibration.links.empty() ? "" : table_of(calibration.links));
}

std::string calibration_line(const Calibration& calibration) {
  return "a task takes " + short_time(calibration.task_extra_ns) + " longer, a message " +
         short_time(calibration.message_extra_ns) +
         (calibration.links.empty() ? "" : " beside its link");
}

std::string device_lines(const Calibration& calibration) {
  if (!calibration.device) return "";
  const DeviceTimes& times = calibration.device->times;
  std::string text = "device: a launch takes " + short_time(times.launch_ns) + ", a flag " +
                     short_time(times.flag_ns) + ", an empty kernel " +
                     short_time(times.kernel_ns) + "; partitions slow each other by " +
                     slower_by(times) + "\n";
  const std::vector<CalibratedLink>& links = calibration.links;
  if (links.empty()) return text;
  return text + "links: " + std::to_string(links.size()) + ", with a latency of " +
         range_of(links, &CalibratedLink::latency_ns, "ns") + " and " +
         range_of(links, &CalibratedLink::bytes_per_us, "bytes per us") + "\n";
}

std::string calibration_note(const Options& options,
                             const std::optional<Calibration>& calibration) {
  if (!calibration) return "";
  const std::string reason = why_void(*calibration);
  return "calibration " + *options.text(kCalibrationRow.name) + ": " +
         calibration_line(*calibration) + "; made with " + std::to_string(calibration->workers) +
         " workers" + (reason.empty() ? "" : "; void: " + reason) + "\n";
}

}  // namespace rrfp
