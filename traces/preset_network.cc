#include "traces/preset_models.h"

namespace rrfp {

namespace {

constexpr double kNsPerMs = 1e6;

constexpr PresetParameter kDegradedStaticParameters[] = {
    {"link", PresetValueType::kLink, "the first two neighbours", 0, 0, 0,
     "[rank, rank]: both directions"},
    number_parameter("delay_ms", "30", 30, 0, 1e6, "of each message; 10, 30 and 60 were measured"),
    {"from_iteration", PresetValueType::kInteger, "7", 7, 0, 1e9, "the first that is slow"},
    kReplicaParameter};

PresetModels link_degraded_static(const PresetCall& call) {
  DrawModel model;
  model.target = DrawTarget::kLatency;
  model.effect = DrawEffect::kExtra;
  model.scope = DrawScope::kLink;
  model.is_static = true;
  const Link link = call.link("link");
  model.selection.links = {link, Link{link.to, link.from}};
  model.selection.iterations.first = call.integer("from_iteration");
  model.selection.replicas = {call.integer("replica")};
  model.distribution = FixedValue{call.number("delay_ms") * kNsPerMs};
  return std::vector<VariabilityModel>{model};
}

constexpr PresetParameter kDegradedDynamicParameters[] = {
    number_parameter("shortest_ms", "50", 50, 1e-3, 1e9, "until other links are slow"),
    number_parameter("longest_ms", "100", 100, 1e-3, 1e9,
                     "the same; U(100, 200) and U(200, 400) were measured as well"),
    number_parameter("delay_ms", "30", 30, 0, 1e6, "mean delay of each message of a slow link"),
    number_parameter("delay_sd_ms", "10", 10, 0, 1e6, "its standard deviation between links"),
    {"fewest_links", PresetValueType::kInteger, "1", 1, 1, kMostRanks, "that are slow at a time"},
    {"most_links", PresetValueType::kInteger, "3", 3, 1, kMostRanks, "that are slow at a time"}};

PresetModels link_degraded_dynamic(const PresetCall& call) {
  DrawModel model;
  model.target = DrawTarget::kLatency;
  model.effect = DrawEffect::kExtra;
  model.scope = DrawScope::kLink;
  model.distribution =
      scaled(Normal{call.number("delay_ms"), call.number("delay_sd_ms"), 0.0, {}}, kNsPerMs);
  Episodes episodes;
  const Uniform length{call.number("shortest_ms"), call.number("longest_ms")};
  if (length.high < length.low) return Error{"\"longest_ms\" is less than \"shortest_ms\""};
  episodes.on_ns = scaled(length, kNsPerMs);
  episodes.off_ns = FixedValue{0};
  episodes.rest_ns = FixedValue{0};
  episodes.element = EpisodeElement::kLinkPair;
  episodes.least_hit = call.integer("fewest_links");
  episodes.most_hit = call.integer("most_links");
  if (episodes.most_hit < episodes.least_hit) {
    return Error{"\"most_links\" is less than \"fewest_links\""};
  }
  model.timing = episodes;
  return std::vector<VariabilityModel>{model};
}

constexpr PresetParameter kFabricCongestedParameters[] = {
    number_parameter("sigma", ".08", 0.08, 0, 10, "of the logarithm of a message's time"),
    number_parameter("slow_probability", ".01", 0.01, 0, 1, "messages that take 2.2 times"),
    number_parameter("stuck_probability", ".001", 0.001, 0, 1, "messages that take 10 times"),
    number_parameter("bandwidth", ".7", 0.7, 0.01, 1, "of all links while the fabric is crowded"),
    number_parameter("crowded_s", "1", 1, 1e-6, 1e6, "mean length of that (an assumption)"),
    number_parameter("quiet_s", "9", 9, 1e-6, 1e9, "mean time between (an assumption)")};

PresetModels fabric_congested(const PresetCall& call) {
  const double slow = call.number("slow_probability");
  const double stuck = call.number("stuck_probability");
  if (slow + stuck > 1) return Error{"\"slow_probability\" and \"stuck_probability\" exceed 1"};
  DrawModel crowded;
  crowded.target = DrawTarget::kBandwidth;
  crowded.scope = DrawScope::kIteration;
  crowded.distribution = FixedValue{call.number("bandwidth")};
  Episodes episodes;
  episodes.on_ns = Exponential{call.number("crowded_s") * 1e9};
  episodes.off_ns = Exponential{call.number("quiet_s") * 1e9};
  episodes.rest_ns = FixedValue{0};
  crowded.timing = episodes;
  return std::vector<VariabilityModel>{
      transfer_factor(DrawScope::kMessage, Lognormal{1, call.number("sigma")}),
      transfer_factor(DrawScope::kMessage, Mixture()
                                               .add(1 - slow - stuck, FixedValue{1})
                                               .add(slow, FixedValue{2.2})
                                               .add(stuck, FixedValue{10})),
      crowded};
}

constexpr PresetParameter kLinkFlapParameters[] = {
    number_parameter("shortest_down_s", ".5", 0.5, 1e-6, 1e6, "that a link is down"),
    number_parameter("longest_down_s", "3", 3, 1e-6, 1e6, "that a link is down"),
    number_parameter("shortest_up_s", "5", 5, 1e-6, 1e6, "that it is up before the next"),
    number_parameter("longest_up_s", "30", 30, 1e-6, 1e6, "that it is up before the next"),
    {"fewest_cycles", PresetValueType::kInteger, "3", 3, 1, 1000, "down and up, in a row"},
    {"most_cycles", PresetValueType::kInteger, "10", 10, 1, 1000, "down and up, in a row"},
    number_parameter("quiet_s", "600", 600, 0, 1e9,
                     "mean time without any between two such rows (an assumption)")};

PresetModels link_flap(const PresetCall& call) {
  DrawModel model;
  model.target = DrawTarget::kLatency;
  model.effect = DrawEffect::kHold;
  model.scope = DrawScope::kLink;
  Episodes episodes;
  const Uniform down{call.number("shortest_down_s"), call.number("longest_down_s")};
  const Uniform up{call.number("shortest_up_s"), call.number("longest_up_s")};
  episodes.least_cycles = call.integer("fewest_cycles");
  episodes.most_cycles = call.integer("most_cycles");
  if (down.high < down.low || up.high < up.low || episodes.most_cycles < episodes.least_cycles) {
    return Error{"a longest time is less than the shortest, or a most less than a fewest"};
  }
  episodes.on_ns = scaled(down, 1e9);
  episodes.off_ns = scaled(up, 1e9);
  episodes.rest_ns = Exponential{call.number("quiet_s") * 1e9};
  episodes.element = EpisodeElement::kLinkPair;
  model.timing = episodes;
  return std::vector<VariabilityModel>{model};
}

}  // namespace

const Preset kLinkDegradedStaticPreset = {
    "link-degraded-static",
    "each message of one link takes 30 ms longer, from iteration 7 on",
    "one pair of ranks, both directions, for the job; F, I and W are left alone",
    "PipeMorph (arXiv 2504.14145), measured there by injection",
    false,
    kDegradedStaticParameters,
    link_degraded_static};

const Preset kLinkDegradedDynamicPreset = {
    "link-degraded-dynamic",
    "1 to 3 links at a time delay messages by N(30, 10) ms; every 50 to 100 ms it is others",
    "a link in one direction, until the next change; F, I and W are left alone. By the clock",
    "PipeMorph (arXiv 2504.14145), measured there by injection",
    false,
    kDegradedDynamicParameters,
    link_degraded_dynamic};

const Preset kFabricCongestedPreset = {
    "fabric-congested",
    "message times of sigma .08, 1 in 100 x2.2, 1 in 1000 x10; now and then 30 % less bandwidth",
    "each message; everything (bandwidth, by the clock); F, I and W are left alone",
    "Alps, measured; RoCE at Meta (SIGCOMM'24), as summarised; how often the bandwidth drops is "
    "an assumption",
    false,
    kFabricCongestedParameters,
    fabric_congested};

const Preset kLinkFlapPreset = {
    "link-flap",
    "a link goes down for .5 to 3 s, 3 to 10 times in a row; what it carries waits",
    "one pair of ranks, both directions, for the episode; F, I and W are left alone. By the clock: "
    "\"iteration_spacing_s\" draws a long job sparsely",
    "after the rates of HPN (SIGCOMM'24), as summarised; the time between is an assumption",
    false,
    kLinkFlapParameters,
    link_flap};

}  // namespace rrfp
