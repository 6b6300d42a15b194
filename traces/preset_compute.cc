#include "traces/preset_models.h"

namespace rrfp {

DrawModel compute_factor(DrawScope scope, const Distribution& distribution) {
  DrawModel model;
  model.scope = scope;
  model.distribution = distribution;
  return model;
}

DrawModel transfer_factor(DrawScope scope, const Distribution& distribution) {
  DrawModel model = compute_factor(scope, distribution);
  model.target = DrawTarget::kTransfer;
  return model;
}

DrawModel fixed_for_job(DrawModel model) {
  model.is_static = true;
  model.known = true;
  return model;
}

namespace {

PresetModels ideal(const PresetCall& /*call*/) { return std::vector<VariabilityModel>(); }

constexpr PresetParameter kHealthyDedicatedParameters[] = {
    number_parameter("compute_sd", ".016", 0.016, 0, 1, "standard deviation of an operation"),
    number_parameter("slow_probability", ".001", 0.001, 0, 1, "operations of 1.04 to 1.2"),
    number_parameter("link_sd", ".018", 0.018, 0, 1, "standard deviation of a message's time"),
    number_parameter("link_slow_probability", ".002", 0.002, 0, 1,
                     "messages of 1.05 to 1.63: so that the 99.9th percentile is 1.34")};

PresetModels healthy_dedicated(const PresetCall& call) {
  const double slow = call.number("slow_probability");
  const double late = call.number("link_slow_probability");
  return std::vector<VariabilityModel>{
      compute_factor(DrawScope::kOperation,
                     Mixture()
                         .add(1 - slow, Normal{1, call.number("compute_sd"), 0.95, 1.04})
                         .add(slow, Uniform{1.04, 1.2})),
      transfer_factor(DrawScope::kMessage,
                      Mixture()
                          .add(1 - late, Normal{1, call.number("link_sd"), {}, {}})
                          .add(late, Uniform{1.05, 1.63}))};
}

constexpr PresetParameter kHealthyNoisyParameters[] = {
    number_parameter("cv", ".05", 0.05, 0, 10, "of an operation: standard deviation over mean"),
    number_parameter("first_factor", "4.5", 4.5, 1, 1000, "of a slow first operation"),
    number_parameter("first_probability", ".0012", 0.0012, 0, 1,
                     "that a rank's first operation of an iteration is slow"),
    number_parameter("step_probability", ".02", 0.02, 0, 1,
                     "that all F, B, I and W of an iteration take 1.1 to 1.4 times as long")};

PresetModels healthy_noisy(const PresetCall& call) {
  DrawModel first = compute_factor(DrawScope::kGpu, FixedValue{call.number("first_factor")});
  first.selection.first_of_iteration = true;
  first.probability = call.number("first_probability");
  DrawModel step = compute_factor(DrawScope::kIteration, Uniform{1.1, 1.4});
  step.probability = call.number("step_probability");
  return std::vector<VariabilityModel>{
      compute_factor(DrawScope::kOperation, Lognormal::of_cv(call.number("cv"))), first, step};
}

constexpr PresetParameter kGpuSpreadParameters[] = {
    number_parameter("sd", ".02", 0.02, 0, 1, "standard deviation between good devices"),
    number_parameter("slow_probability", ".03", 0.03, 0, 1, "devices that take 1.05 to 1.2")};

PresetModels gpu_spread(const PresetCall& call) {
  const double slow = call.number("slow_probability");
  return std::vector<VariabilityModel>{fixed_for_job(
      compute_factor(DrawScope::kGpu, Mixture()
                                          .add(1 - slow, Normal{1, call.number("sd"), 0.0, {}})
                                          .add(slow, Uniform{1.05, 1.2})))};
}

// A factor on one device, for the job.
DrawModel one_device(const PresetCall& call, const Distribution& distribution) {
  DrawModel model = fixed_for_job(compute_factor(DrawScope::kGpu, distribution));
  model.selection.ranks = {call.integer("rank")};
  model.selection.replicas = {call.integer("replica")};
  return model;
}

constexpr PresetParameter kLemonGpuParameters[] = {
    kRankParameter, kReplicaParameter,
    number_parameter("factor", "2.2", 2.2, 1, 1000, "on all its durations")};

PresetModels lemon_gpu(const PresetCall& call) {
  return std::vector<VariabilityModel>{one_device(call, FixedValue{call.number("factor")})};
}

constexpr PresetParameter kSlowWorkerParameters[] = {
    kRankParameter, kReplicaParameter,
    number_parameter("forward_factor", "2.5", 2.5, 1, 1000, "on its forwards"),
    number_parameter("backward_factor", "2.3", 2.3, 1, 1000, "on its backwards"),
    number_parameter("link_factor", "3.24", 3.24, 1, 1000, "on its messages, in and out")};

PresetModels slow_worker(const PresetCall& call) {
  DrawModel compute = one_device(call, FixedValue{1});
  compute.by_kind[static_cast<std::size_t>(Kind::kForward)] =
      FixedValue{call.number("forward_factor")};
  compute.by_kind[static_cast<std::size_t>(Kind::kBackward)] =
      FixedValue{call.number("backward_factor")};
  DrawModel links =
      fixed_for_job(transfer_factor(DrawScope::kLink, FixedValue{call.number("link_factor")}));
  links.selection.ranks = compute.selection.ranks;
  links.selection.replicas = compute.selection.replicas;
  return std::vector<VariabilityModel>{compute, links};
}

constexpr PresetParameter kSlowHostParameters[] = {
    number_parameter("probability", ".005", 0.005, 0, 1, "that a host is slow"),
    number_parameter("factor", "1.1", 1.1, 1, 1000, "on all durations of a slow host"),
    {"ranks_per_host", PresetValueType::kInteger, "1", 1, 1, kMostRanks,
     "neighbouring ranks that share a host (1: tensor parallelism fills it)"}};

PresetModels slow_host(const PresetCall& call) {
  DrawModel model =
      fixed_for_job(compute_factor(DrawScope::kGpu, FixedValue{call.number("factor")}));
  model.group = call.integer("ranks_per_host");
  model.probability = call.number("probability");
  return std::vector<VariabilityModel>{model};
}

constexpr PresetParameter kDiurnalThermalParameters[] = {
    number_parameter("amplitude", ".01", 0.01, 0, 1, "of the daily wave"),
    number_parameter("period_s", "86400", 86'400, 1, 1e9, "of the wave"), kRankParameter,
    kReplicaParameter,
    number_parameter("hot_factor_most", "1.06", 1.06, 1, 1000,
                     "the hot device takes 1 to this much, drawn for the job")};

PresetModels diurnal_thermal(const PresetCall& call) {
  ComputeWave wave;
  wave.amplitude = call.number("amplitude");
  wave.period_ns = static_cast<std::int64_t>(call.number("period_s") * 1e9);
  return std::vector<VariabilityModel>{
      wave, one_device(call, Uniform{1, call.number("hot_factor_most")})};
}

}  // namespace

const Preset kIdealPreset = {"ideal", "nothing varies", "-", "-", false, {}, ideal};

const Preset kHealthyDedicatedPreset = {
    "healthy-dedicated",
    "a dedicated cluster that is well: operations N(1, .016) within .95 to 1.04, 1 in 1000 slower",
    "each operation, each message; F, I and W independent",
    "production jobs of ByteDance (arXiv 2505.05713), measured from the published traces",
    false,
    kHealthyDedicatedParameters,
    healthy_dedicated};

const Preset kHealthyNoisyPreset = {
    "healthy-noisy",
    "a shared or small cluster: operations of CV .05, slow first operations, slow computing steps",
    "each operation, F, I and W independent; device (first operation); iteration, all computation "
    "at once (slow steps). Messages, gradient synchronisation and optimizer keep their times",
    "runs on A10 and step times of Megatron's continuous integration, measured",
    false,
    kHealthyNoisyParameters,
    healthy_noisy};

const Preset kGpuSpreadPreset = {
    "gpu-spread",
    "devices differ: .97 N(1, .02) + .03 U(1.05, 1.2), the same for the whole job",
    "GPU (rank of a replica), for the job; F, I and W alike",
    "PAL (SC'22), measured from its data",
    false,
    kGpuSpreadParameters,
    gpu_spread};

const Preset kLemonGpuPreset = {"lemon-gpu",
                                "one device takes 2.2 times as long",
                                "one GPU, for the job; F, I and W alike",
                                "Lonestar6, measured from the data of PAL (SC'22)",
                                false,
                                kLemonGpuParameters,
                                lemon_gpu};

const Preset kSlowWorkerPreset = {
    "slow-worker",
    "one worker is slow: F x2.5, backward x2.3, its messages x3.24",
    "one GPU and its links, for the job; I and W like the backward",
    "production jobs of ByteDance (arXiv 2505.05713), measured from the published traces",
    false,
    kSlowWorkerParameters,
    slow_worker};

const Preset kSlowHostPreset = {
    "slow-host",
    "one host in 200 takes 1.1 times as long",
    "host (neighbouring ranks of a replica), for the job; F, I and W alike",
    "MegaScale (NSDI'24), as summarised",
    false,
    kSlowHostParameters,
    slow_host};

const Preset kDiurnalThermalPreset = {
    "diurnal-thermal",
    "all computation swings by 1 % over the day, and one hot device takes up to 1.06",
    "F, I and W of all stages (wave, by the clock; see iteration_spacing); one GPU, for the job. "
    "Messages, gradient synchronisation and optimizer keep their times",
    "Llama 3 (arXiv 2407.21783), Lit Silicon; stated there",
    false,
    kDiurnalThermalParameters,
    diurnal_thermal};

}  // namespace rrfp
