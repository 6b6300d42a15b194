#include <algorithm>
#include <cmath>

#include "traces/length_draws.h"
#include "traces/lengths_file.h"
#include "traces/preset_models.h"
#include "traces/quantity.h"

namespace rrfp {

namespace {

// The part of a split backward that is the input gradient, over all stages.
double input_gradient_share(const Scenario& scenario) {
  if (!scenario.pipeline.split_backward) return 1;
  double input_ns = 0;
  double weight_ns = 0;
  for (std::size_t stage = 0; stage < scenario.pipeline.stages.size(); ++stage) {
    for (int m = 0; m < scenario.pipeline.microbatches; ++m) {
      input_ns += static_cast<double>(scenario.backward_ns.at(static_cast<int>(stage), m));
      weight_ns += static_cast<double>(scenario.weight_ns.at(static_cast<int>(stage), m));
    }
  }
  return input_ns > 0 ? input_ns / (input_ns + weight_ns) : 1;
}

LengthCost cost_of(Kind kind, double constant, double linear, double quadratic) {
  LengthCost cost;
  cost.kinds = {kind};
  cost.constant = constant;
  cost.linear = linear;
  cost.quadratic = quadratic;
  return cost;
}

constexpr PresetParameter kHeavyLastParameters[] = {
    number_parameter("forward_factor", "2.08", 2.08, 0.01, 1000, "on forwards of the last stage"),
    number_parameter("backward_factor", "1.42", 1.42, 0.01, 1000, "on its backwards")};

PresetModels heavy_last_stage(const PresetCall& call) {
  DrawModel model = fixed_for_job(compute_factor(DrawScope::kStage, FixedValue{1}));
  model.selection.stages = {static_cast<int>(call.scenario().pipeline.stages.size()) - 1};
  model.by_kind[static_cast<std::size_t>(Kind::kForward)] =
      FixedValue{call.number("forward_factor")};
  model.by_kind[static_cast<std::size_t>(Kind::kBackward)] =
      FixedValue{call.number("backward_factor")};
  return std::vector<VariabilityModel>{model};
}

constexpr PresetParameter kLongtailParameters[] = {
    number_parameter("a", ".257", 0.257, 0.1, 1e4, "shape of the beta distribution of s"),
    number_parameter("b", "1.067", 1.067, 0.1, 1e4, "shape of the beta distribution of s"),
    number_parameter("forward_base", ".89", 0.89, 0, 1000, "F is this, plus"),
    number_parameter("forward_slope", "1.14", 1.14, 0, 1000, "this times s"),
    number_parameter("backward_base", ".87", 0.87, 0, 1000, "B is this, plus"),
    number_parameter("backward_slope", "2.01", 2.01, 0, 1000, "this times s")};

// The backward as a whole has the factor that was measured. Where it is split, W
// keeps to the part that does not grow with s (matrix products of all tokens),
// and I takes what is left.
PresetModels seqlen_longtail(const PresetCall& call) {
  const double base = call.number("backward_base");
  const double slope = call.number("backward_slope");
  MicrobatchLengths model;
  model.length = Beta{call.number("a"), call.number("b"), 1};
  model.costs = {
      cost_of(Kind::kForward, call.number("forward_base"), call.number("forward_slope"), 0),
      cost_of(Kind::kInputGradient, base, slope / input_gradient_share(call.scenario()), 0),
      cost_of(Kind::kWeightGradient, base, 0, 0), cost_of(Kind::kBackward, base, slope, 0)};
  return std::vector<VariabilityModel>{model};
}

constexpr PresetParameter kEmpiricalParameters[] = {
    {"file", PresetValueType::kText, "prompts of the Azure trace", 0, 0, 0,
     "lengths, a CSV beside the scenario"},
    {"column", PresetValueType::kText, "none: one number a line", 0, 0, 0, "of the file"},
    number_parameter("tokens", "8192", 8192, 1, 1e12,
                     "of a microbatch, filled with sequences; base times are for one that is a "
                     "single sequence"),
    number_parameter("attention_share", ".5", 0.5, 0, 1,
                     "of the time of such a microbatch that grows with the sum of squares (an "
                     "assumption: take yours); split: at most the part of the backward that I is")};

// Of 19,366 conversations of the Azure LLM inference trace of 2023 ("Splitwise",
// ISCA'24; public dataset, CC-BY): ContextTokens at 0, 1, ..., 99 %, at 99, 99.1,
// ..., 99.9 % and at 99.9, 99.91, ..., 100 %. Steps are finer the longer the
// sequences are: the longest is three times as long as the 99th percentile, and
// attention goes with the square.
constexpr double kAzureBody[] = {
    2,    29,   91,   161,  181,  181,  191,  197,  201,  203,  207,  212,  222,  242,  317,
    372,  375,  378,  381,  384,  387,  390,  392,  394,  395,  396,  398,  399,  400,  402,
    403,  405,  406,  408,  411,  414,  419,  424,  433,  456,  703,  863,  903,  946,  972,
    984,  994,  1002, 1009, 1014, 1020, 1025, 1031, 1036, 1041, 1045, 1050, 1055, 1060, 1065,
    1071, 1076, 1081, 1086, 1092, 1097, 1102, 1109, 1116, 1122, 1130, 1139, 1147, 1159, 1171,
    1189, 1214, 1249, 1311, 1314, 1315, 1321, 1368, 1508, 1689, 1876, 2032, 2221, 2401, 2584,
    2734, 3291, 4073, 4076, 4079, 4083, 4086, 4090, 4098, 4142};
constexpr double kAzureTail[] = {4142, 4150, 4159, 4240, 4614, 4831, 5021, 5277, 5652, 6179};
constexpr double kAzureEnd[] = {6179, 6311, 6352, 6393, 6465, 6570, 6949, 7096, 7112, 7668, 14050};

Distribution azure_conversations() {
  return Mixture()
      .add(0.99, Quantiles{{std::begin(kAzureBody), std::end(kAzureBody)}})
      .add(0.009, Quantiles{{std::begin(kAzureTail), std::end(kAzureTail)}})
      .add(0.001, Quantiles{{std::begin(kAzureEnd), std::end(kAzureEnd)}});
}

// What part of the input gradient is attention where W has none and I all of the
// backward's. I cannot have more than it is; 1 % is left to rounding of its time.
Result<double> attention_in_input(const Scenario& scenario, double attention) {
  const double share = input_gradient_share(scenario);
  if (attention <= 1.01 * share) return std::min(1.0, attention / share);
  const double percent = std::floor(100 * share);
  return Error{"\"attention_share\" is " + json_fraction(attention).decimal()->text +
               ", but the input gradient, which has all attention of a split backward, is only " +
               std::to_string(static_cast<int>(percent)) + " % of it; give \"attention_share\": " +
               json_fraction(percent / 100).decimal()->text + " or less"};
}

PresetModels seqlen_empirical(const PresetCall& call) {
  MicrobatchLengths model;
  if (const std::string& file = call.text("file"); !file.empty()) {
    const Result<Quantiles> lengths = read_lengths(file, call.text("column"));
    if (!lengths.ok()) return lengths.error();
    model.length = *lengths;
  } else {
    model.length = azure_conversations();
  }
  model.unit = call.number("tokens");
  model.samples = 0;
  if (const Result<void> packed = check_packed(model); !packed.ok()) return packed.error();
  const double attention = call.number("attention_share");
  const Result<double> in_input = attention_in_input(call.scenario(), attention);
  if (!in_input.ok()) return in_input.error();
  model.costs = {cost_of(Kind::kForward, 0, 1 - attention, attention),
                 cost_of(Kind::kInputGradient, 0, 1 - *in_input, *in_input),
                 cost_of(Kind::kWeightGradient, 0, 1, 0),
                 cost_of(Kind::kBackward, 0, 1 - attention, attention)};
  return std::vector<VariabilityModel>{model};
}

constexpr PresetParameter kEncoderBurstParameters[] = {
    {"encoder_stages", PresetValueType::kInteger, "1", 1, 1, 10'000,
     "the first so many stages are the encoder's"},
    {"samples", PresetValueType::kInteger, "4", 4, 1, 10'000, "of a microbatch"},
    number_parameter("without_images", ".5", 0.5, 0, 1, "of the samples"),
    number_parameter("one_more", ".5", 0.5, 0, 0.99, "probability of each further image, up to 16"),
    number_parameter("text_images", "2", 2, 0, 1e6,
                     "tokens of text of a sample, in images' worth of tokens")};

constexpr int kMostImages = 16;

// Encoder stages cost in proportion to images, language stages to text and
// images; base times are those of the mean microbatch.
PresetModels mm_encoder_burst(const PresetCall& call) {
  const int stages = static_cast<int>(call.scenario().pipeline.stages.size());
  const int encoder = call.integer("encoder_stages");
  if (encoder >= stages) {
    return Error{"\"encoder_stages\" is " + std::to_string(encoder) + " of " +
                 std::to_string(stages) + " stages; at least one must be left for language"};
  }
  const double some = 1 - call.number("without_images");
  const double more = call.number("one_more");
  Mixture images;
  images.add(1 - some, FixedValue{0});
  double share = some;
  double mean = 0;
  for (int count = 1; count <= kMostImages; ++count) {
    const double weight = count == kMostImages ? share : share * (1 - more);
    images.add(weight, FixedValue{static_cast<double>(count)});
    mean += weight * count;
    share *= more;
  }
  if (mean <= 0) return Error{"\"without_images\" is 1: nothing varies"};
  MicrobatchLengths model;
  model.length = images;
  model.samples = call.integer("samples");
  model.unit = mean * model.samples;
  const double text = call.number("text_images");
  LengthCost encoding;
  for (int stage = 0; stage < encoder; ++stage) encoding.stages.push_back(stage);
  encoding.linear = 1;
  LengthCost language;
  language.constant = text / (text + mean);
  language.linear = mean / (text + mean);
  model.costs = {encoding, language};
  return std::vector<VariabilityModel>{model};
}

constexpr PresetParameter kMoeSkewParameters[] = {
    number_parameter("least_load", "1.3", 1.3, 1, 1000, "of the busiest expert over the mean"),
    number_parameter("median_load", "1.8", 1.8, 1, 1000, "the same"),
    number_parameter("most_load", "2.9", 2.9, 1, 1000, "the same"),
    number_parameter("expert_share", ".6", 0.6, 0, 1,
                     "of a task that is experts and all-to-all (an assumption: take yours)")};

PresetModels moe_skew(const PresetCall& call) {
  const double loads[] = {call.number("least_load"), call.number("median_load"),
                          call.number("most_load")};
  if (!std::is_sorted(std::begin(loads), std::end(loads))) {
    return Error{"\"least_load\", \"median_load\" and \"most_load\" must ascend"};
  }
  Quantiles factors;
  for (const double load : loads) {
    factors.values.push_back(1 + call.number("expert_share") * (load - 1));
  }
  DrawModel model = compute_factor(DrawScope::kOperation, FixedValue{1});
  // By kind, so that F and backward of a stage and microbatch share their draw.
  model.by_kind[static_cast<std::size_t>(Kind::kForward)] = factors;
  model.by_kind[static_cast<std::size_t>(Kind::kBackward)] = factors;
  return std::vector<VariabilityModel>{model};
}

}  // namespace

const Preset kHeavyLastStagePreset = {
    "heavy-last-stage",
    "the last stage is heavy: F x2.08, backward x1.42",
    "the last stage, in all replicas, for the job; I and W like the backward",
    "ST, a production job of ByteDance (arXiv 2505.05713), measured from the published trace",
    false,
    kHeavyLastParameters,
    heavy_last_stage};

const Preset kSeqlenLongtailPreset = {
    "seqlen-longtail",
    "long-tailed sequence lengths: s ~ Beta(.257, 1.067), F = .89 + 1.14 s, B = .87 + 2.01 s",
    "microbatch, all stages alike; split: W stays at .87, I takes the rest of B. Known beforehand",
    "SE, a production job of ByteDance (arXiv 2505.05713), measured from the published trace",
    false,
    kLongtailParameters,
    seqlen_longtail};

const Preset kSeqlenEmpiricalPreset = {
    "seqlen-empirical",
    "sequences of given lengths packed to a number of tokens; time linear + sum of squares",
    "microbatch, all stages alike; split: W follows the linear part, I has all attention. "
    "Known beforehand",
    "Azure LLM inference trace 2023 (ISCA'24), measured; or a file of yours",
    false,
    kEmpiricalParameters,
    seqlen_empirical};

const Preset kMmEncoderBurstPreset = {
    "mm-encoder-burst",
    "0 to 16 images a sample: encoder stages cost by images, language stages by text and images",
    "microbatch, all stages alike; F, I and W alike. Known beforehand",
    "modelled so that the heaviest of 64 microbatches is about 4.15 times the lightest "
    "(PipeWeaver, as summarised; images a sample after Azure's multimodal trace)",
    true,
    kEncoderBurstParameters,
    mm_encoder_burst};

const Preset kMoeSkewPreset = {
    "moe-skew",
    "experts are unevenly loaded: busiest over mean 1.3 to 2.9, median 1.8",
    "stage and microbatch; F, I and W alike",
    "DODOCO, tt-metal; stated there. The share of experts in a task is an assumption",
    false,
    kMoeSkewParameters,
    moe_skew};

}  // namespace rrfp
