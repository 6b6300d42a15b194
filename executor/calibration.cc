#include "executor/calibration.h"

#include <sys/prctl.h>

#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "executor/doorbell.h"
#include "traces/atomic_file.h"
#include "traces/json_cursor.h"
#include "traces/json_reader.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr std::string_view kCalibrationSchema = "rrfp.calibration/1";

std::int64_t trimmed_mean(std::vector<std::int64_t> numbers) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  numbers.resize(numbers.size() - numbers.size() / 100);
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0}) /
         static_cast<std::int64_t>(numbers.size());
}

}  // namespace

std::int64_t quantile_ns(std::vector<std::int64_t> numbers, int permille) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  return numbers[(numbers.size() - 1) * static_cast<std::size_t>(permille) / 1000];
}

Calibration calibrate(const Overheads& overheads) {
  Calibration calibration;
  calibration.task_extra_ns = std::max<std::int64_t>(0, trimmed_mean(overheads.task_ns));
  calibration.message_extra_ns = std::max<std::int64_t>(0, trimmed_mean(overheads.message_ns));
  return calibration;
}

void probe_timers(int threads, int count, Calibration& to) {
  std::vector<std::vector<std::int64_t>> late(static_cast<std::size_t>(threads));
  std::vector<std::thread> probes;
  for (int i = 0; i < threads; ++i) {
    probes.emplace_back([&late, i, count] {
      prctl(PR_SET_TIMERSLACK, 1);
      Doorbell bell;
      for (int k = 0; k < count; ++k) {
        const std::int64_t until_ns =
            MonotonicClock::read_ns() + 1'000'000 + (i * 7 + k) % 16 * 62'500;
        bell.wait(bell.token(), until_ns);
        late[static_cast<std::size_t>(i)].push_back(MonotonicClock::read_ns() - until_ns);
      }
    });
  }
  for (std::thread& probe : probes) probe.join();
  std::vector<std::int64_t> all;
  for (const std::vector<std::int64_t>& of : late) all.insert(all.end(), of.begin(), of.end());
  to.workers = threads;
  to.timer_p50_ns = quantile_ns(all, 500);
  to.timer_p99_ns = quantile_ns(std::move(all), 990);
}

Case with_calibration(const Case& input, const Calibration& calibration) {
  Case out = input;
  const Program& program = out.program;
  if (out.expected_ns.empty()) out.expected_ns = out.duration_ns;
  for (TaskId task = 0; task < program.task_ids(); ++task) {
    if (program.exists(task)) {
      out.duration_ns[static_cast<std::size_t>(task)] += calibration.task_extra_ns;
    }
  }
  out.network.latency_ns.resize(program.edges().size());
  for (std::size_t id = 0; id < program.edges().size(); ++id) {
    if (program.edges()[id].local()) continue;
    std::vector<std::int64_t>& latency_ns = out.network.latency_ns[id];
    latency_ns.resize(static_cast<std::size_t>(out.tensor_parallel.lanes * program.microbatches()),
                      0);
    for (std::int64_t& ns : latency_ns) ns += calibration.message_extra_ns;
  }
  return out;
}

Result<void> write_calibration_file(const std::string& path, const Calibration& calibration) {
  JsonValue timers{JsonObject{}};
  timers.add("p50", JsonValue(calibration.timer_p50_ns));
  timers.add("p99", JsonValue(calibration.timer_p99_ns));
  JsonValue json{JsonObject{}};
  json.add("schema", JsonValue(kCalibrationSchema));
  json.add("workers", JsonValue(calibration.workers));
  json.add("task_extra_ns", JsonValue(calibration.task_extra_ns));
  json.add("message_extra_ns", JsonValue(calibration.message_extra_ns));
  json.add("timer_late_ns", std::move(timers));
  return write_file_atomically(path, to_text(json, JsonLayout::kReadable) + "\n");
}

Result<Calibration> read_calibration_file(const std::string& path) {
  const Result<JsonDocument> document = read_json_file(path);
  if (!document.ok()) return document.error();
  JsonErrors errors(document->file);
  const JsonCursor in(errors, document->root);
  in.only_keys({"schema", "workers", "task_extra_ns", "message_extra_ns", "timer_late_ns"});
  if (in.at("schema").string() != kCalibrationSchema) {
    in.at("schema").expected("\"rrfp.calibration/1\"");
  }
  Calibration calibration;
  calibration.workers = in.at("workers").small_integer(0, 1 << 20);
  calibration.task_extra_ns = in.at("task_extra_ns").integer({0, 1'000'000'000});
  calibration.message_extra_ns = in.at("message_extra_ns").integer({0, 1'000'000'000});
  const JsonCursor timers = in.at("timer_late_ns");
  timers.only_keys({"p50", "p99"});
  calibration.timer_p50_ns = timers.at("p50").integer();
  calibration.timer_p99_ns = timers.at("p99").integer();
  if (!errors.ok()) return errors.status().error();
  return calibration;
}

}  // namespace rrfp
