// How fast the scheduler core and the simulator are.
//
//   decide/P/M            one decision with work ready
//   decide_blocked/P/M    M ready F, none admissible
//   simulate_ready/P/M    one iteration: split backward, bfw, budget 2P
//   simulate_anticipating/P/M  the same with zb-h2 as hint, budget 2P - 1,
//                         reach .75, grace .5
//   textbook_ready/P/M    the first of these by a textbook engine, as a
//                         yardstick on a machine that others use too
//
// Durations are drawn before the clock starts; idle causes and records are
// off. Every simulated task is one decision of RankScheduler, which the
// benchmark checks by its counter.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "experiments/version.h"
#include "scheduler_core/random.h"
#include "sim/eager_engine.h"
#include "tests/bench/textbook_engine.h"
#include "traces/prepared_case.h"

namespace rrfp {
namespace {

Program chain(int ranks, int microbatches) {
  ProgramSpec spec;
  spec.ranks = ranks;
  spec.microbatches = microbatches;
  spec.split_backward = true;
  for (int stage = 0; stage < ranks; ++stage) {
    StageSpec one;
    one.rank = stage;
    if (stage > 0) one.predecessors = {stage - 1};
    spec.stages.push_back(one);
  }
  Result<Program> program = Program::create(std::move(spec));
  RRFP_CHECK(program.ok());
  return std::move(program).value();
}

// Tasks of 0.5 to 1.5 ms, messages of 10 to 100 us, one activation of 1 byte
// per microbatch.
Case noisy_case(int ranks, int microbatches, std::int64_t budget) {
  Case input{.name = "bench", .program = chain(ranks, microbatches)};
  const auto draw = [](std::uint64_t purpose, std::uint64_t index, std::int64_t low,
                       std::int64_t high) {
    const std::uint64_t bits = random_bits({1, 0, purpose, index});
    return low + static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(high - low));
  };
  for (int id = 0; id < input.program.task_ids(); ++id) {
    input.duration_ns.push_back(draw(1, static_cast<std::uint64_t>(id), 500'000, 1'500'000));
  }
  for (std::size_t edge = 0; edge < input.program.edges().size(); ++edge) {
    std::vector<std::int64_t> latency;
    for (int m = 0; m < microbatches; ++m) {
      const auto index =
          edge * static_cast<std::size_t>(microbatches) + static_cast<std::size_t>(m);
      latency.push_back(draw(2, index, 10'000, 100'000));
    }
    input.network.latency_ns.push_back(std::move(latency));
  }
  input.memory.activation_bytes.assign(static_cast<std::size_t>(ranks * microbatches), 1);
  input.memory.budget_bytes.assign(static_cast<std::size_t>(ranks), budget);
  return input;
}

std::unique_ptr<const PreparedCase> prepared(const Case& input) {
  Result<std::unique_ptr<const PreparedCase>> made = PreparedCase::create(input);
  RRFP_CHECK(made.ok());
  return std::move(made).value();
}

std::uint64_t decisions_of(const EagerEngine& engine, int ranks) {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank) sum += engine.scheduler(rank).decisions();
  return sum;
}

void simulate_case(benchmark::State& state, const Case& input) {
  const std::unique_ptr<const PreparedCase> ready = prepared(input);
  EagerEngine engine(*ready, {});
  engine.run();
  RRFP_CHECK(engine.completed());
  const std::int64_t makespan_ns = engine.makespan_ns();
  const int ranks = input.program.ranks();
  const std::uint64_t before = decisions_of(engine, ranks);
  std::int64_t runs = 0;
  for (auto _ : state) {
    engine.run();
    ++runs;
  }
  const auto tasks = static_cast<std::uint64_t>(ranks * kSlots * input.program.microbatches());
  RRFP_CHECK(engine.makespan_ns() == makespan_ns);
  RRFP_CHECK(decisions_of(engine, ranks) - before >= tasks * static_cast<std::uint64_t>(runs));
  state.counters["tasks_per_second"] = benchmark::Counter(
      static_cast<double>(tasks) * static_cast<double>(runs), benchmark::Counter::kIsRate);
}

void simulate_ready(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  Case input = noisy_case(ranks, static_cast<int>(state.range(1)), 2 * ranks);
  input.policy.hint.name = "bfw";
  simulate_case(state, input);
}
BENCHMARK(simulate_ready)->Args({8, 64})->Args({128, 512});

void simulate_anticipating(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  Case input = noisy_case(ranks, static_cast<int>(state.range(1)), 2 * ranks - 1);
  input.policy.hint.name = "zb-h2";
  input.policy.anticipation = Anticipation{750, 500};
  simulate_case(state, input);
}
BENCHMARK(simulate_anticipating)->Args({8, 64});

void textbook_ready(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  Case input = noisy_case(ranks, static_cast<int>(state.range(1)), 2 * ranks);
  input.policy.hint.name = "bfw";
  const std::unique_ptr<const PreparedCase> ready = prepared(input);
  EagerEngine engine(*ready, {});
  engine.run();
  TextbookEngine textbook(*ready);
  std::int64_t runs = 0;
  for (auto _ : state) {
    RRFP_CHECK(textbook.run() == engine.makespan_ns());
    ++runs;
  }
  const double tasks = static_cast<double>(ranks) * kSlots * input.program.microbatches();
  state.counters["tasks_per_second"] =
      benchmark::Counter(tasks * static_cast<double>(runs), benchmark::Counter::kIsRate);
}
BENCHMARK(textbook_ready)->Args({8, 64})->Args({128, 512});

// One rank in the middle of a pipeline whose F inputs have all arrived.
struct OneRank {
  OneRank(int ranks, int microbatches, std::int64_t budget)
      : ready([&] {
          Case input = noisy_case(ranks, microbatches, budget);
          input.policy.hint.name = "bfw";
          return prepared(input);
        }()),
        rank(ranks / 2),
        scheduler(ready->program(), ready->schedule(), ready->scheduler_config(rank)) {}

  void arrive_all() {
    scheduler.reset();
    for (int m = 0; m < ready->program().microbatches(); ++m) {
      scheduler.on_input(ready->program().task_id(rank, Slot::kForward, m), rank - 1);
    }
  }

  std::unique_ptr<const PreparedCase> ready;
  int rank;
  RankScheduler scheduler;
};

// A decision that starts a task, and the finish that lets the next one come.
void decide(benchmark::State& state) {
  const int microbatches = static_cast<int>(state.range(1));
  OneRank one(static_cast<int>(state.range(0)), microbatches, microbatches);
  one.arrive_all();
  int left = microbatches;
  for (auto _ : state) {
    if (left == 0) {
      state.PauseTiming();
      one.arrive_all();
      left = microbatches;
      state.ResumeTiming();
    }
    const Decision decision = one.scheduler.decide(0);
    benchmark::DoNotOptimize(decision);
    one.scheduler.on_finished(decision.task, 0);
    --left;
  }
}
BENCHMARK(decide)->Args({8, 512});

void decide_blocked(benchmark::State& state) {
  OneRank one(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)), 1);
  one.arrive_all();
  one.scheduler.on_finished(one.scheduler.decide(0).task, 0);
  for (auto _ : state) {
    const Decision decision = one.scheduler.decide(0);
    RRFP_CHECK(decision.reason == WaitReason::kMemory);
    benchmark::DoNotOptimize(decision);
  }
}
BENCHMARK(decide_blocked)->Args({8, 512});

}  // namespace
}  // namespace rrfp

// Numbers mean nothing without the machine and the build they come from.
int main(int argc, char** argv) {
  std::string machine = "unknown";
  std::ifstream cpus("/proc/cpuinfo");
  for (std::string line; std::getline(cpus, line);) {
    if (line.rfind("model name", 0) == 0) {
      machine = line.substr(std::min(line.size(), line.find(':') + 2));
      break;
    }
  }
  benchmark::AddCustomContext("machine", machine);
  benchmark::AddCustomContext("compiler", RRFP_BENCH_COMPILER);
  benchmark::AddCustomContext("flags", RRFP_BENCH_FLAGS);
  benchmark::AddCustomContext("rrfp", rrfp::version_text());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
