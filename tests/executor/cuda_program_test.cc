// Goal: `rrfp run --device synthetic` as a user starts it, on the double of a
// CUDA device: the pipeline completes, its trace is whole, its decisions can be
// made again, and the model explains it. Where there is no device, one clear
// sentence and status 2.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "executor/calibration_file.h"
#include "tests/executor/program_for_tests.h"
#include "tests/executor/validation_for_tests.h"
#include "traces/json_reader.h"
#include "traces/native_trace_reader.h"

namespace rrfp {
namespace {

class CudaProgram : public testing::Test {
 protected:
  void SetUp() override { use_double(); }
  void TearDown() override {
    unsetenv("RRFP_CUDA_MODULE");
    unsetenv("RRFP_DOUBLE_WITH");
    unsetenv("RRFP_DOUBLE_WITHOUT");
    unsetenv("RRFP_DOUBLE_SLOW_COPIES");
  }

  static std::string module(const std::string& name) {
    return (std::filesystem::path(RRFP_PROGRAM).parent_path() / name).string();
  }
  static void use_double() {
    setenv("RRFP_CUDA_MODULE", module("librrfp_cuda_double.so").c_str(), 1);
  }

  // Four ranks, messages of many blocks and an odd number of bytes.
  static std::string scenario(const std::string& extra = "", int ranks = 4) {
    return write_text("cuda.json",
                      R"({"schema": "rrfp.scenario/1", "name": "s", "seed": 3, "iterations": 3,
  "pipeline": {"ranks": )" +
                          std::to_string(ranks) +
                          R"(, "microbatches": 6, "split_backward": true},
  "durations": {"forward_us": 2000, "input_gradient_us": 2000, "weight_gradient_us": 2000},
  "network": {"latency_us": 100, "activation_bytes": 100003, "gradient_bytes": 50001},
  "variability": [{"model": "lognormal", "on": "compute", "cv": 0.2}])" +
                          extra + R"(,
  "policies": [{"name": "bfw", "hint": "bfw"},
               {"name": "1f1b", "hint": "1f1b", "fixed": true},
               {"name": "1f1b blocking", "hint": "1f1b", "fixed": true,
                "network_mode": "rendezvous"}]})");
  }
};

int count_tasks(const std::string& path) {
  Result<NativeTraceReader> reader = NativeTraceReader::open(path);
  EXPECT_TRUE(reader.ok());
  if (!reader.ok()) return 0;
  int tasks = 0;
  TraceRecord record;
  while (true) {
    const Result<bool> more = reader->next(&record);
    EXPECT_TRUE(more.ok());
    if (!more.ok() || !*more) break;
    if (std::holds_alternative<TraceTask>(record)) ++tasks;
  }
  EXPECT_EQ(reader->dropped().total(), 0);
  return tasks;
}

// As a timeline: every task as it started and ended on its device, one after another.
void expect_shown(const std::string& trace, int tasks) {
  const std::string file = path_for("timeline.json");
  const EndedProgram exported = rrfp({"export", "--to", "perfetto", trace, file});
  ASSERT_EQ(exported.status, 0) << exported.text;
  const Result<JsonDocument> json = parse_json(read_text_file(file).value(), file);
  ASSERT_TRUE(json.ok()) << json.error().message;
  std::map<std::int64_t, std::map<double, double>> ends;  // by track and start, in us
  int found = 0;
  int short_ones = 0;
  for (const JsonValue& event : *json->root.find("traceEvents")->array()) {
    if (*event.find("ph")->string() != "X" || *event.find("cat")->string() == "span") continue;
    ++found;
    const double start = std::stod(event.find("ts")->decimal()->text);
    const double length = std::stod(event.find("dur")->decimal()->text);
    if (length <= 500) ++short_ones;
    ends[*event.find("tid")->integer()][start] = start + length;
  }
  EXPECT_EQ(found, tasks);
  // A host that is held up sees a start and an end at once.
  EXPECT_LT(short_ones, tasks / 4) << "tasks of 2 ms, give or take";
  for (const auto& [track, slices] : ends) {
    double before = 0;
    for (const auto& [start, end] : slices) {
      EXPECT_GE(start, before - .001) << "track " << track;
      before = end;
    }
  }
}

TEST_F(CudaProgram, RunsAPipelineOnPartitionsOfOneDevice) {
  const std::string trace = path_for("cuda.trace.jsonl");
  const std::string log = path_for("cuda.decisions.jsonl");
  const EndedProgram ran =
      rrfp({"run", scenario(), "--device", "synthetic", "--trace", trace, "--decisions", log});
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_TRUE(ran.has("on 4 threads, 4 partitions of 33 SMs (plain streams)\n")) << ran.text;
  EXPECT_EQ(count_tasks(trace), 3 * 4 * 6 * 3);
  EXPECT_TRUE(rrfp({"info", trace}).has("device 4 partitions of 33 SMs (plain streams)"));
  expect_shown(trace, 3 * 4 * 6 * 3);
  const EndedProgram replayed = rrfp({"replay-log", log});
  EXPECT_EQ(replayed.status, 0) << replayed.text;
  EXPECT_TRUE(replayed.has("identical: ")) << replayed.text;
}

TEST_F(CudaProgram, RunsLanesAndReplicas) {
  const std::string log = path_for("cuda.decisions.jsonl");
  const EndedProgram ran = rrfp(
      {"run",
       scenario(
           R"(, "tensor_parallel": {"lanes": 2}, "data_parallel": {"replicas": 2, "gradient_sync_us": 100})",
           2),
       "--device", "synthetic", "--decisions", log});
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_TRUE(ran.has("on 8 threads, 8 partitions of 16 SMs")) << ran.text;
  EXPECT_FALSE(ran.has("note: 8 workers")) << ran.text;
  EXPECT_EQ(rrfp({"replay-log", log}).status, 0);
}

TEST_F(CudaProgram, ConfinesPartitionsToSmsWhereTheDriverCan) {
  setenv("RRFP_DOUBLE_WITH", "green-contexts", 1);
  const EndedProgram ran = rrfp({"run", scenario(), "--device", "synthetic"});
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_TRUE(ran.has("4 partitions of 32 SMs (green contexts)\n")) << ran.text;
}

// Of 132 SMs there are no 17 times 8.
TEST_F(CudaProgram, MorePartitionsThanTheDriverCanConfineShareAllSms) {
  setenv("RRFP_DOUBLE_WITH", "green-contexts", 1);
  const EndedProgram ran = rrfp({"run", scenario("", 17), "--device", "synthetic"});
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_TRUE(ran.has("17 partitions of 7 SMs (plain streams)\n")) << ran.text;
  EXPECT_TRUE(ran.has("note: 17 workers (a rank, lane and replica each) share GPU 0")) << ran.text;
  EXPECT_TRUE(ran.has("mpirun -n 17 rrfp ")) << ran.text;
}

TEST_F(CudaProgram, SeesCompletionByEventsWhereStreamsDoNotWrite) {
  setenv("RRFP_DOUBLE_WITHOUT", "memops", 1);
  const EndedProgram ran = rrfp({"run", scenario(), "--device", "synthetic"});
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_TRUE(ran.has(", completion by events\n")) << ran.text;
}

TEST_F(CudaProgram, MessagesMayBeCutOrEmpty) {
  for (const char* bytes : {"0", "13"}) {
    const EndedProgram ran =
        rrfp({"run", scenario(), "--device", "synthetic", "--payload-bytes", bytes});
    EXPECT_EQ(ran.status, 0) << ran.text;
  }
}

TEST_F(CudaProgram, MoreThanFitsOnTheDeviceIsSaid) {
  std::string text = read_text_file(scenario()).value();
  text.replace(text.find("100003"), 6, "5000000000");
  const EndedProgram ran = rrfp({"run", write_text("large.json", text), "--device", "synthetic"});
  EXPECT_EQ(ran.status, 1) << ran.text;
  EXPECT_TRUE(ran.has("has no room for tensors on their way: 5000 MB are needed")) << ran.text;
  EXPECT_TRUE(ran.has("smaller messages (rrfp run --payload-bytes N)")) << ran.text;
}

// The simulator, fed with the run's own times, gives the run's own length.
TEST_F(CudaProgram, ModelErrorIsWithinThreePermille) {
  const EndedProgram ran =
      rrfp({"validate", scenario(), "--device", "synthetic", "--iterations", "4", "--json"});
  ASSERT_EQ(ran.status, status_of_validation(ran.text)) << ran.text;
  const Result<JsonDocument> json = validation_in(ran.text);
  ASSERT_TRUE(json.ok()) << json.error().message << ran.text;
  const JsonArray& policies = *json->root.find("policies")->array();
  ASSERT_EQ(policies.size(), 3U);
  for (const JsonValue& policy : policies) {
    EXPECT_LE(model_error_of(policy), .003) << *policy.find("policy")->string();
  }
}

// Copies into the partition of rank 1 are slow: of all links those two.
TEST_F(CudaProgram, CalibratesTheLinkOfEveryEdgeAndSimulatesWithIt) {
  setenv("RRFP_DOUBLE_SLOW_COPIES", "3,2000000,500", 1);
  const std::string file = path_for("calibration.json");
  const EndedProgram ran = rrfp({"calibrate", scenario(), "--device", "synthetic", "--out", file});
  ASSERT_EQ(ran.status, 0) << ran.text;
  EXPECT_TRUE(ran.has("on 4 partitions of 33 SMs (plain streams), medians:\n")) << ran.text;
  EXPECT_TRUE(ran.has("  3 -> 2        all  ")) << ran.text;
  const Result<Calibration> found = read_calibration_file(file);
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_TRUE(found->device.has_value());
  EXPECT_GT(found->device->times.flag_ns, 0);
  const std::pair<int, int> edges[] = {{0, 1}, {1, 0}, {1, 2}, {2, 1}, {2, 3}, {3, 2}};
  ASSERT_EQ(found->links.size(), std::size(edges));
  for (std::size_t i = 0; i < std::size(edges); ++i) {
    const CalibratedLink& link = found->links[i];
    EXPECT_EQ(std::pair(link.from_rank, link.to_rank), edges[i]);
    EXPECT_EQ(link.latency_ns >= 1'900'000, link.to_rank == 1) << i << ": " << link.latency_ns;
  }
  const EndedProgram calibrated = rrfp({"simulate", scenario(), "--calibration", file, "--json"});
  ASSERT_EQ(calibrated.status, 0) << calibrated.text;
  EXPECT_TRUE(calibrated.has(R"("calibration":{"schema":"rrfp.calibration/1")"));
  // What a case does not use is no matter, but for the figures.
  const EndedProgram smaller = rrfp({"validate", scenario("", 2), "--calibration", file});
  EXPECT_EQ(smaller.status, status_of_validation(smaller.text)) << smaller.text;
  EXPECT_TRUE(smaller.has("the calibration is of another job, made with 4 workers and not 2"))
      << smaller.text;
  EXPECT_TRUE(smaller.has(" and not emulated devices")) << smaller.text;
  const EndedProgram wider = rrfp({"validate", scenario("", 5), "--calibration", file});
  EXPECT_EQ(wider.status, 2);
  EXPECT_TRUE(wider.has("no link from rank 3 to rank 4")) << wider.text;
}

TEST_F(CudaProgram, NamesTheDevice) {
  const EndedProgram listed = rrfp({"devices"});
  EXPECT_EQ(listed.status, 0);
  EXPECT_TRUE(listed.has("cuda  device 0: double of a device on CPU threads")) << listed.text;
}

TEST_F(CudaProgram, ChecksTheDevice) {
  const EndedProgram checked = rrfp({"devices", "--check", "--gpu", "0"});
  for (const char* passed :
       {"  ok      partitions: 2000 products of known result take ",
        "  ok      matrix products: cuBLAS loads", "  ok      small model against the CPU's: of ",
        "  ok      wide model against the CPU's: of "}) {
    EXPECT_TRUE(checked.has(passed)) << passed << " is not in:\n" << checked.text;
  }
  EXPECT_EQ(checked.count("\n  "), 5) << checked.text;
#if RRFP_CUDA_NCCL
  EXPECT_TRUE(checked.has("  ok      NCCL: NCCL 2.")) << checked.text;
  EXPECT_EQ(checked.status, 0) << checked.text;
#else
  EXPECT_TRUE(checked.has("  FAILED  NCCL: rrfp was built without NCCL")) << checked.text;
  EXPECT_EQ(checked.status, 1) << checked.text;
#endif
}

TEST_F(CudaProgram, ChecksNoDeviceThatIsNotThere) {
  const EndedProgram beyond = rrfp({"devices", "--check", "--gpu", "1"});
  EXPECT_EQ(beyond.status, 2);
  EXPECT_TRUE(beyond.has("--gpu")) << beyond.text;
  EXPECT_EQ(rrfp({"devices", "--gpu", "0"}).status, 2);
  setenv("RRFP_CUDA_MODULE", module("no_such_module.so").c_str(), 1);
  const EndedProgram none = rrfp({"devices", "--check"});
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(none.has("cuda  no CUDA device: ")) << none.text;
}

TEST_F(CudaProgram, WhatIsNotThereIsSaidInOneSentence) {
  const std::string input = scenario();
  setenv("RRFP_CUDA_MODULE", module("no_such_module.so").c_str(), 1);
  for (const char* kind : {"synthetic", "cuda"}) {
    const EndedProgram ran = rrfp({"run", input, "--device", kind});
    EXPECT_EQ(ran.status, 2) << ran.text;
    EXPECT_EQ(ran.text.rfind("rrfp run: no CUDA device: ", 0), 0U) << ran.text;
    EXPECT_EQ(ran.count("\n"), 1) << ran.text;
  }
  const EndedProgram listed = rrfp({"devices"});
  EXPECT_EQ(listed.status, 0);
  EXPECT_TRUE(listed.has("cuda  no CUDA device: the module does not load")) << listed.text;
  // A file that is something else.
  setenv("RRFP_CUDA_MODULE", module("librrfp_mpi.so").c_str(), 1);
  EXPECT_EQ(rrfp({"run", input, "--device", "synthetic"}).status, 2);
}

TEST_F(CudaProgram, ARealDeviceIsThereOrIsSaidNotToBe) {
  if (!std::filesystem::exists(module("librrfp_cuda.so"))) {
    GTEST_SKIP() << "built without the module for real devices";
  }
  const std::string input = scenario();
  unsetenv("RRFP_CUDA_MODULE");
  const bool there = rrfp({"devices"}).has("cuda  device 0: ");
  const EndedProgram ran = rrfp({"run", input, "--device", "synthetic"});
  EXPECT_EQ(ran.status, there ? 0 : 2) << ran.text;
  EXPECT_EQ(ran.text.rfind("rrfp run: no CUDA device: ", 0) == 0, !there) << ran.text;
}

TEST_F(CudaProgram, AnUnknownKindIsRefused) {
  const EndedProgram ran = rrfp({"run", scenario(), "--device", "synthetc"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_TRUE(ran.has("did you mean \"synthetic\"")) << ran.text;
}

}  // namespace
}  // namespace rrfp
