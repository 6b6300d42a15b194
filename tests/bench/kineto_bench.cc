// How fast a PyTorch profiler file of 1 GB is imported, on one core, and the
// most memory that takes.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "scheduler_core/check.h"
#include "traces/kineto_writer.h"
#include "traces/profile_import.h"

namespace rrfp {
namespace {

constexpr std::uintmax_t kFileBytes = 1'000'000'000;
constexpr int kMicrobatches = 16;

/// What counts from here on (Linux).
void forget_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

/// Of this process, in MB; 0 where the system does not tell.
double peak_memory_mb() {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kib = 0;
  while (status >> word) {
    if (word == "VmHWM:") status >> kib;
  }
  return kib * 1024 / 1e6;
}

/// One rank that runs F and B of each microbatch in turn, with as many
/// iterations as fill the file.
std::string write_profile(const KinetoWriterOptions& options) {
  ProgramSpec spec;
  spec.ranks = 1;
  spec.microbatches = kMicrobatches;
  spec.stages.emplace_back();
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("rrfp-bench-kineto-" + std::to_string(::getpid())))
          .string();
  Result<KinetoWriter> writer =
      KinetoWriter::create(folder, TraceHeader(*Program::create(spec)), options);
  RRFP_CHECK(writer.ok());
  // An operator is 170 bytes long, a kernel and its launch 420.
  const auto task_bytes =
      static_cast<std::uintmax_t>(170 * options.cpu_operators + 420 * options.kernels + 180);
  const auto iterations = static_cast<int>(kFileBytes / (task_bytes * 2 * kMicrobatches));
  for (int iteration = 0; iteration < iterations; ++iteration) {
    TraceStep step;
    step.iteration = iteration;
    std::int64_t at_ns = 0;
    for (int i = 0; i < 2 * kMicrobatches; ++i) {
      TraceTask task;
      task.iteration = iteration;
      task.task = {0, i % 2 == 0 ? Kind::kForward : Kind::kBackward, i / 2};
      task.start_ns = at_ns;
      task.end_ns = at_ns += 10'000'003;
      step.tasks.push_back(task);
    }
    writer->add(step);
  }
  RRFP_CHECK(writer->finish().ok());
  return folder;
}

void import_a_gigabyte(benchmark::State& state) {
  KinetoWriterOptions options;
  options.cpu_operators = static_cast<int>(state.range(0));
  options.kernels = static_cast<int>(state.range(1));
  const std::string folder = write_profile(options);
  const std::uintmax_t bytes = std::filesystem::file_size(folder + "/rank0.json");
  forget_peak_memory();
  const double before_mb = peak_memory_mb();
  std::int64_t records = 0;
  for (auto _ : state) {
    const Result<ProfileImport> imported = import_kineto(folder, {});
    RRFP_CHECK(imported.ok());
    records = static_cast<std::int64_t>(imported->records.size());
  }
  state.counters["file_MB"] = static_cast<double>(bytes) / 1e6;
  state.counters["MB_per_cpu_second"] = benchmark::Counter(
      static_cast<double>(bytes) / 1e6, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak_MB"] = peak_memory_mb();
  state.counters["before_MB"] = before_mb;
  state.counters["tasks"] = static_cast<double>(records);
  std::filesystem::remove_all(folder);
}
BENCHMARK(import_a_gigabyte)
    ->ArgNames({"operators", "kernels"})
    ->Args({400, 100})  // mostly operators of the CPU, as files are
    ->Args({0, 500})    // launches and kernels alone, all of which are kept
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rrfp
