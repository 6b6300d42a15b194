// What it costs to draw: one value from a distribution, and the durations of a world.
#include <benchmark/benchmark.h>

#include <string>

#include "scheduler_core/check.h"
#include "scheduler_core/random.h"
#include "traces/distribution.h"
#include "traces/scenario_file.h"
#include "traces/scenario_resolve.h"

namespace rrfp {
namespace {

void draw_values(benchmark::State& state, const Distribution& distribution) {
  const Sampler sampler(distribution);
  const DrawSeries draws(DrawKey{1, 2, 3, 0});
  std::uint64_t index = 0;
  double sum = 0;
  for (auto _ : state) sum += sampler.at(draws.bits(index++));
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations());
}

void draw_normal(benchmark::State& state) { draw_values(state, Normal{1, 0.016, 0.95, 1.04}); }
void draw_lognormal(benchmark::State& state) { draw_values(state, Lognormal{1, 0.3}); }
void draw_beta(benchmark::State& state) { draw_values(state, Beta{0.257, 1.067, 1}); }
void draw_quantiles(benchmark::State& state) { draw_values(state, Quantiles{{1, 2, 3, 5, 9}}); }
void draw_mixture(benchmark::State& state) {
  draw_values(state, Mixture().add(0.999, Normal{1, 0.016, 0.95, 1.04}).add(0.001, Uniform{1, 2}));
}
BENCHMARK(draw_normal)->Name("draw/normal");
BENCHMARK(draw_lognormal)->Name("draw/lognormal");
BENCHMARK(draw_beta)->Name("draw/beta");
BENCHMARK(draw_quantiles)->Name("draw/quantiles");
BENCHMARK(draw_mixture)->Name("draw/mixture");

// 8 ranks, 64 microbatches, F, I and W: 1536 tasks; items are tasks.
void draw_world(benchmark::State& state, const std::string& variability) {
  const std::string text = R"({"schema": "rrfp.scenario/1", "iterations": 1000000,
    "pipeline": {"ranks": 8, "microbatches": 64, "split_backward": true},
    "durations": {"forward_ms": 10, "input_gradient_ms": 10, "weight_gradient_ms": 10},
    "network": {"latency_us": 50}, "variability": )" +
                           variability + R"(, "policies": [{"name": "bf"}]})";
  const Result<JsonDocument> document = parse_json(text, "bench");
  RRFP_CHECK(document.ok());
  Result<Scenario> scenario = read_scenario(*document);
  RRFP_CHECK(scenario.ok());
  const Result<ScenarioResolver> resolver = ScenarioResolver::create(*std::move(scenario));
  RRFP_CHECK(resolver.ok());
  int iteration = 0;
  for (auto _ : state) benchmark::DoNotOptimize(resolver->draw_world(iteration++ % 1'000'000, 0));
  state.SetItemsProcessed(state.iterations() * 1536);
}

void world_ideal(benchmark::State& state) { draw_world(state, "[]"); }
void world_lognormal(benchmark::State& state) {
  draw_world(state, R"([{"model": "lognormal", "on": "compute", "cv": 0.1}])");
}
void world_healthy(benchmark::State& state) { draw_world(state, R"(["healthy-dedicated"])"); }
void world_degraded(benchmark::State& state) { draw_world(state, R"(["link-degraded-dynamic"])"); }
BENCHMARK(world_ideal)->Name("draw_world/ideal");
BENCHMARK(world_lognormal)->Name("draw_world/lognormal");
BENCHMARK(world_healthy)->Name("draw_world/healthy-dedicated");
BENCHMARK(world_degraded)->Name("draw_world/link-degraded-dynamic");

}  // namespace
}  // namespace rrfp
