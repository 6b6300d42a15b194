#include "traces/preset_models.h"
#include "traces/time_axis.h"

namespace rrfp {

namespace {

constexpr PresetParameter kFailslowParameters[] = {
    number_parameter("slowdown", "1.34", 1.34, 1, 1000,
                     "of the job in the long run, with many microbatches"),
    number_parameter("time_share", ".5", 0.5, 0.001, 0.999,
                     "of the time that is in an episode (an assumption)"),
    number_parameter("shortest_s", "30", 30, 1e-3, 1e6, "of an episode"),
    number_parameter("longest_s", "36000", 36'000, 1e-3, 1e8, "of an episode")};

// The pipeline goes as fast as its slowest rank, so while one device takes
// `severity` as long, the job does: 1 + share * (severity - 1) = slowdown.
PresetModels failslow_episode(const PresetCall& call) {
  const double share = call.number("time_share");
  const double shortest = call.number("shortest_s");
  const double longest = call.number("longest_s");
  if (longest < shortest) return Error{"\"longest_s\" is less than \"shortest_s\""};
  DrawModel model =
      compute_factor(DrawScope::kGpu, FixedValue{1 + (call.number("slowdown") - 1) / share});
  Episodes episodes;
  episodes.on_ns = scaled(LogUniform{shortest, longest}, 1e9);
  episodes.off_ns = Exponential{Sampler(episodes.on_ns).mean() * (1 - share) / share};
  episodes.rest_ns = FixedValue{0};
  episodes.element = EpisodeElement::kGpu;
  model.timing = episodes;
  return std::vector<VariabilityModel>{model};
}

constexpr PresetParameter kGcParameters[] = {
    number_parameter("pause_ms", "1450", 1450, 0, 1e9, "of a rank, in its first forward"),
    {"every", PresetValueType::kInteger, "265", 265, 1, 1e9, "iterations from pause to pause"},
    {"spread", PresetValueType::kInteger, "7", 7, 0, 1e9, "by which that varies"}};

PresetModels gc(const PresetCall& call, bool same) {
  DrawModel model = compute_factor(DrawScope::kGpu, FixedValue{call.number("pause_ms") * 1e6});
  model.effect = DrawEffect::kExtra;
  model.selection.first_of_iteration = true;
  RepeatedSteps steps{call.integer("every"), call.integer("spread"), same};
  if (steps.spread >= steps.every) return Error{"\"spread\" must be less than \"every\""};
  model.timing = steps;
  return std::vector<VariabilityModel>{model};
}

PresetModels gc_staggered(const PresetCall& call) { return gc(call, false); }
PresetModels gc_planned(const PresetCall& call) { return gc(call, true); }

constexpr PresetParameter kDataloaderParameters[] = {
    number_parameter("probability", ".25", 0.25, 0, 1, "that an iteration waits"),
    number_parameter("wait_steps", ".5", 0.5, 0, 1e6,
                     "mean wait, in nominal iterations; it is U(.8, 1.2) of that"),
    number_parameter("stall_probability", "3e-5", 3e-5, 0, 1, "that an iteration stalls"),
    number_parameter("stall_steps", "100", 100, 0, 1e6, "stall, in nominal iterations")};

PresetModels dataloader_stall(const PresetCall& call) {
  const Result<Program> program = Program::create(call.scenario().pipeline);
  if (!program.ok()) return program.error();
  const auto step_ns = static_cast<double>(TimeAxis(call.scenario(), *program).iteration_ns());
  const double waits = call.number("probability");
  const double stalls = call.number("stall_probability");
  if (waits + stalls > 1) return Error{"\"probability\" and \"stall_probability\" exceed 1"};
  const double wait_ns = call.number("wait_steps") * step_ns;
  DrawModel model;
  model.target = DrawTarget::kInput;
  model.effect = DrawEffect::kExtra;
  model.scope = DrawScope::kReplica;
  model.distribution = Mixture()
                           .add(1 - waits - stalls, FixedValue{0})
                           .add(waits, Uniform{0.8 * wait_ns, 1.2 * wait_ns})
                           .add(stalls, FixedValue{call.number("stall_steps") * step_ns});
  return std::vector<VariabilityModel>{model};
}

}  // namespace

const Preset kFailslowEpisodePreset = {
    "failslow-episode",
    "now and then one device is slow for 30 s to 10 h, so that the job takes 1.34 times as long",
    "one GPU of all, for the episode; F, I and W alike. By the clock: \"iteration_spacing_s\" "
    "draws a long job sparsely",
    "Greyhound (arXiv 2410.12588), stated there; onset is Poisson, length log-uniform",
    false,
    kFailslowParameters,
    failslow_episode};

const Preset kGcStaggeredPreset = {
    "gc-staggered",
    "garbage collection: a pause of 1.45 s every 265 +- 7 iterations, each rank in its own turn",
    "GPU, phases of their own; in the first forward of the iteration",
    "public logs of training runs, stated there",
    false,
    kGcParameters,
    gc_staggered};

const Preset kGcPlannedPreset = {
    "gc-planned",
    "garbage collection: a pause of 1.45 s every 265 +- 7 iterations, all ranks in the same",
    "everything at the same iterations; in the first forward of each rank",
    "public logs of training runs, stated there",
    false,
    kGcParameters,
    gc_planned};

const Preset kDataloaderStallPreset = {
    "dataloader-stall",
    "the first stage waits for its data: in 1 of 4 iterations half a step, rarely 100 steps",
    "replica and iteration; F, I and W are left alone",
    "sizes are stated in public reports; the probabilities are modelled",
    true,
    kDataloaderParameters,
    dataloader_stall};

}  // namespace rrfp
