// What it costs to read, replay and decompose a trace of a million operations.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "scheduler_core/check.h"
#include "sim/replay_analysis.h"
#include "traces/native_trace_writer.h"

namespace rrfp {
namespace {

constexpr int kRanks = 4;
constexpr int kMicrobatches = 16;
constexpr int kReplicas = 8;
constexpr int kIterations = 558;  ///< 1 000 000 operations: 224 a replica and iteration

/// 1f1b-like times are not needed: F of every stage in turn, then B.
void write_iteration(int iteration, NativeTraceWriter* writer) {
  constexpr std::int64_t kTaskNs = 1'000'003;
  for (int replica = 0; replica < kReplicas; ++replica) {
    for (int m = 0; m < kMicrobatches; ++m) {
      for (int half = 0; half < 2; ++half) {
        for (int step = 0; step < kRanks; ++step) {
          const int stage = half == 0 ? step : kRanks - 1 - step;
          TraceTask task;
          task.iteration = iteration;
          task.replica = replica;
          task.rank = stage;
          task.task = {stage, half == 0 ? Kind::kForward : Kind::kBackward, m};
          task.start_ns = (m + step + half * (kMicrobatches + kRanks)) * kTaskNs;
          task.ready_ns = task.decided_ns = task.start_ns;
          task.end_ns = task.start_ns + kTaskNs - 1000 + replica;
          writer->add(task);
          if (step + 1 == kRanks) continue;
          TraceMessage message;
          message.iteration = iteration;
          message.replica = replica;
          message.kind = task.task.kind;
          message.from_stage = stage;
          message.to_stage = half == 0 ? stage + 1 : stage - 1;
          message.microbatch = m;
          message.sequence = m;
          message.send = {task.end_ns, task.end_ns, task.end_ns + 700};
          message.receive = message.send;
          writer->add(message);
        }
      }
    }
  }
}

const std::string& trace_path() {
  static const std::string kPath = [] {
    ProgramSpec spec;
    spec.ranks = kRanks;
    spec.microbatches = kMicrobatches;
    for (int stage = 0; stage < kRanks; ++stage) {
      spec.stages.emplace_back().rank = stage;
      if (stage > 0) spec.stages.back().predecessors = {stage - 1};
    }
    TraceHeader header(*Program::create(spec));
    header.replicas = kReplicas;
    const std::string path = (std::filesystem::temp_directory_path() /
                              ("rrfp-bench-" + std::to_string(::getpid()) + ".jsonl"))
                                 .string();
    Result<NativeTraceWriter> writer = NativeTraceWriter::create(path, header);
    RRFP_CHECK(writer.ok());
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      write_iteration(iteration, &*writer);
    }
    RRFP_CHECK(writer->finish().ok());
    return path;
  }();
  return kPath;
}

void replay_a_million_operations(benchmark::State& state) {
  const std::string& path = trace_path();
  std::int64_t operations = 0;
  for (auto _ : state) {
    const auto analysis = analyse_trace(path, {.decompose = state.range(0) != 0});
    RRFP_CHECK(analysis.ok());
    operations = 0;
    for (const std::int64_t count : analysis->operations) operations += count;
  }
  state.counters["operations"] = static_cast<double>(operations);
}
BENCHMARK(replay_a_million_operations)
    ->ArgName("decompose")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rrfp
