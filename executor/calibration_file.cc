#include "executor/calibration_file.h"

#include <map>
#include <set>
#include <utility>

#include "traces/atomic_file.h"
#include "traces/json_cursor.h"
#include "traces/json_reader.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr std::string_view kCalibrationSchema = "rrfp.calibration/1";
constexpr int kMostWorkers = 1 << 20;
constexpr IntegerRange kTimes = {0, 1'000'000'000};
constexpr IntegerRange kSpeeds = {1, 1'000'000'000};          // bytes per us: to 1 PB/s
constexpr IntegerRange kContention = {1'000, 1'000'000'000};  // permille

JsonValue device_to_json(const CalibratedDevice& device) {
  JsonValue json{JsonObject{}};
  json.add("about", JsonValue(device.about));
  json.add("launch_ns", JsonValue(device.times.launch_ns));
  json.add("flag_ns", JsonValue(device.times.flag_ns));
  json.add("kernel_ns", JsonValue(device.times.kernel_ns));
  json.add("contention_permille", JsonValue(device.times.contention_permille));
  return json;
}

JsonValue link_to_json(const CalibratedLink& link) {
  JsonValue json{JsonObject{}};
  json.add("from_rank", JsonValue(link.from_rank));
  json.add("to_rank", JsonValue(link.to_rank));
  if (link.lane != CalibratedLink::kAllLanes) json.add("lane", JsonValue(link.lane));
  json.add("latency_ns", JsonValue(link.latency_ns));
  json.add("bytes_per_us", JsonValue(link.bytes_per_us));
  return json;
}

CalibratedDevice read_device(const JsonCursor& in) {
  in.only_keys({"about", "launch_ns", "flag_ns", "kernel_ns", "contention_permille"});
  CalibratedDevice device;
  device.about = in.at("about").string();
  device.times.launch_ns = in.at("launch_ns").integer(kTimes);
  device.times.flag_ns = in.at("flag_ns").integer(kTimes);
  device.times.kernel_ns = in.at("kernel_ns").integer(kTimes);
  device.times.contention_permille = in.at("contention_permille").integer(kContention);
  return device;
}

CalibratedLink read_link(const JsonCursor& in) {
  in.only_keys({"from_rank", "to_rank", "lane", "latency_ns", "bytes_per_us"});
  CalibratedLink link;
  link.from_rank = in.at("from_rank").small_integer(0, kMostWorkers);
  link.to_rank = in.at("to_rank").small_integer(0, kMostWorkers);
  if (const auto lane = in.find("lane")) link.lane = lane->small_integer(0, kMostWorkers);
  link.latency_ns = in.at("latency_ns").integer(kTimes);
  link.bytes_per_us = in.at("bytes_per_us").integer(kSpeeds);
  if (link.from_rank == link.to_rank) in.at("to_rank").expected("another rank than from_rank");
  return link;
}

std::vector<CalibratedLink> read_links(const JsonCursor& in) {
  std::vector<CalibratedLink> links;
  std::map<std::pair<int, int>, std::set<int>> lanes_of;  // by ranks
  for (const JsonCursor& item : in.items()) {
    const CalibratedLink link = read_link(item);
    if (!in.ok()) return {};
    // Several that a message could take would be ambiguous.
    std::set<int>& lanes = lanes_of[{link.from_rank, link.to_rank}];
    const bool takes_all = link.lane == CalibratedLink::kAllLanes;
    const bool taken = takes_all ? !lanes.empty() : lanes.count(CalibratedLink::kAllLanes) > 0;
    if (taken || !lanes.insert(link.lane).second) {
      item.fail("the link from rank " + std::to_string(link.from_rank) + " to rank " +
                std::to_string(link.to_rank) + " is there twice; expected one, or one per lane");
      return {};
    }
    links.push_back(link);
  }
  return links;
}

}  // namespace

JsonValue calibration_to_json(const Calibration& calibration) {
  JsonValue timers{JsonObject{}};
  timers.add("p50", JsonValue(calibration.timer_p50_ns));
  timers.add("p99", JsonValue(calibration.timer_p99_ns));
  JsonValue json{JsonObject{}};
  json.add("schema", JsonValue(kCalibrationSchema));
  if (!calibration.job.empty()) json.add("job", JsonValue(calibration.job));
  if (!calibration.transport.empty()) json.add("transport", JsonValue(calibration.transport));
  json.add("workers", JsonValue(calibration.workers));
  json.add("task_extra_ns", JsonValue(calibration.task_extra_ns));
  json.add("message_extra_ns", JsonValue(calibration.message_extra_ns));
  json.add("timer_late_ns", std::move(timers));
  if (calibration.spread_permille > 0) {
    json.add("spread_permille", JsonValue(calibration.spread_permille));
  }
  if (calibration.device) json.add("device", device_to_json(*calibration.device));
  if (!calibration.links.empty()) {
    JsonArray links;
    for (const CalibratedLink& link : calibration.links) links.push_back(link_to_json(link));
    json.add("links", JsonValue(std::move(links)));
  }
  if (calibration.payload_limit_bytes) {
    json.add("payload_limit_bytes", JsonValue(*calibration.payload_limit_bytes));
  }
  return json;
}

Result<void> write_calibration_file(const std::string& path, const Calibration& calibration) {
  return write_file_atomically(
      path, to_text(calibration_to_json(calibration), JsonLayout::kReadable) + "\n");
}

Result<Calibration> read_calibration_file(const std::string& path) {
  const Result<JsonDocument> document = read_json_file(path);
  if (!document.ok()) return document.error();
  JsonErrors errors(document->file);
  const JsonCursor in(errors, document->root);
  in.only_keys({"schema", "workers", "task_extra_ns", "message_extra_ns", "timer_late_ns", "device",
                "links", "payload_limit_bytes", "job", "transport", "spread_permille"});
  in.at("schema").choice({Choice<int>{kCalibrationSchema, 0}});
  Calibration calibration;
  calibration.workers = in.at("workers").small_integer(0, kMostWorkers);
  calibration.task_extra_ns = in.at("task_extra_ns").integer(kTimes);
  calibration.message_extra_ns = in.at("message_extra_ns").integer(kTimes);
  const JsonCursor timers = in.at("timer_late_ns");
  timers.only_keys({"p50", "p99"});
  calibration.timer_p50_ns = timers.at("p50").integer();
  calibration.timer_p99_ns = timers.at("p99").integer();
  if (const auto device = in.find("device")) calibration.device = read_device(*device);
  if (const auto links = in.find("links")) calibration.links = read_links(*links);
  if (const auto limit = in.find("payload_limit_bytes")) {
    calibration.payload_limit_bytes = limit->integer();
  }
  if (const auto job = in.find("job")) calibration.job = job->string();
  if (const auto transport = in.find("transport")) calibration.transport = transport->string();
  if (const auto spread = in.find("spread_permille")) {
    calibration.spread_permille = spread->integer(kTimes);
  }
  if (!errors.ok()) return errors.status().error();
  return calibration;
}

}  // namespace rrfp
