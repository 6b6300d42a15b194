#include <limits>

#include "traces/distribution_file.h"
#include "traces/quantity.h"
#include "traces/variability_parts.h"
#include "traces/variability_words.h"

namespace rrfp {

namespace {

constexpr double kMostFactor = 1e6;
constexpr int kMostIteration = std::numeric_limits<int>::max() - 1;
constexpr int kMostCycles = 1'000;

void check_draw_keys(const JsonCursor& in, ModelWord word) {
  KnownKeys keys({"model", "on", "scope", "group", "static", "tasks", "stages", "ranks", "replicas",
                  "links", "iterations", "first_of_iteration", "steps", "episodes", "probability",
                  "known", "from_preset", "modelled"});
  if (word == ModelWord::kFactor) {
    for (const std::string_view key : distribution_keys()) keys.with(key);
    for (const Choice<Kind>& kind : kTaskKinds) keys.with(kind.word);
  }
  if (word == ModelWord::kExtra) keys.with("extra", time_units());
  keys.check(in);
}

// The drawn distributions: of all, or by kind of task.

void read_draws_in(const JsonCursor& in, double most, double scale, DrawModel& out) {
  for (const Choice<Kind>& kind : kTaskKinds) {
    const auto member = in.find(kind.word);
    if (!member) continue;
    out.by_kind[static_cast<std::size_t>(kind.value)] = read_distribution(*member, most, scale);
  }
  if (!out.has_kinds()) {
    out.distribution = read_distribution_member(in, most, scale);
  } else if (has_distribution_member(in)) {
    in.fail("found a distribution for all tasks and one by kind; give one of them");
  }
}

void read_draws(const JsonCursor& in, DrawModel& out) {
  if (out.effect == DrawEffect::kHold) return;
  if (out.effect == DrawEffect::kFactor) return read_draws_in(in, kMostFactor, 1, out);
  const Quantity extra = need_quantity(in, "extra", time_units());
  if (!in.ok()) return;
  const auto scale = static_cast<double>(extra.scale);
  const double most = static_cast<double>(kMostQuantity) / scale;
  if (extra.in.value().object() == nullptr) {
    out.distribution = read_distribution(extra.in, most, scale);
    return;
  }
  std::vector<std::string_view> keys(distribution_keys().begin(), distribution_keys().end());
  for (const Choice<Kind>& kind : kTaskKinds) keys.push_back(kind.word);
  extra.in.only_keys(keys);
  read_draws_in(extra.in, most, scale, out);
}

DrawScope scope(const JsonCursor& in, DrawTarget target) {
  using Scope = DrawScope;
  const bool compute = target == DrawTarget::kCompute;
  const auto given = in.find("scope");
  if (!given) {
    if (target == DrawTarget::kInput) return Scope::kMicrobatch;
    return compute ? Scope::kOperation : Scope::kMessage;
  }
  const Scope scope = given->choice(kDrawScopes);
  const bool shared =
      scope == Scope::kMicrobatch || scope == Scope::kReplica || scope == Scope::kIteration;
  const bool fits = shared || (compute && scope != Scope::kMessage && scope != Scope::kLink) ||
                    (is_on_messages(target) && (scope == Scope::kMessage || scope == Scope::kLink));
  if (!fits) {
    given->expected(
        compute ? "\"operation\", \"microbatch\", \"stage\", \"rank\", \"gpu\", \"replica\" or "
                  "\"iteration\" for what is on compute"
        : target == DrawTarget::kInput
            ? "\"microbatch\", \"replica\" or \"iteration\" for what is on input"
            : "\"message\", \"link\", \"microbatch\", \"replica\" or \"iteration\" for what is "
              "on messages");
  }
  return scope;
}

Selection selection(const JsonCursor& in, DrawTarget target, const Scenario& scenario) {
  const int stage_count = static_cast<int>(scenario.pipeline.stages.size());
  const bool messages = is_on_messages(target);
  Selection out;
  out.kinds = read_kinds(in);
  out.stages = read_indices(in, "stages", stage_count - 1);
  out.ranks = read_indices(in, "ranks", scenario.pipeline.ranks - 1);
  out.replicas = read_indices(in, "replicas", scenario.data_parallel.replicas - 1);
  if (const auto list = in.find("links")) {
    for (const JsonCursor& item : list->items()) out.links.push_back(read_link(item, scenario));
  }
  if (const auto range = in.find("iterations")) {
    range->only_keys({"from", "to"});
    out.iterations.first = static_cast<int>(range->integer_or("from", 0, {0, kMostIteration}));
    if (const auto last = range->find("to")) {
      out.iterations.last = last->small_integer(out.iterations.first, kMostIteration);
    }
  }
  out.first_of_iteration = in.boolean_or("first_of_iteration", false);
  const auto refuse = [&in](bool wrong, std::string_view key, std::string_view where) {
    const auto member = in.find(key);
    if (wrong && member) {
      member->fail("this key is only given for what is on " + std::string(where));
    }
  };
  refuse(!messages, "links", "\"latency\", \"transfer\" or \"bandwidth\"");
  refuse(messages, "stages", "\"compute\"; a message has \"ranks\" or \"links\"");
  refuse(target != DrawTarget::kCompute, "first_of_iteration", "\"compute\"");
  for (const std::string_view key : {"tasks", "stages", "ranks"}) {
    refuse(target == DrawTarget::kInput, key, "\"compute\" or on messages");
  }
  return out;
}

Episodes read_episodes(const JsonCursor& in) {
  KnownKeys({"cycles", "hit", "count"})
      .with("on", time_units())
      .with("off", time_units())
      .with("rest", time_units())
      .check(in);
  const auto time = [](const Quantity& quantity) {
    const auto scale = static_cast<double>(quantity.scale);
    return read_distribution(quantity.in, static_cast<double>(kMostQuantity) / scale, scale);
  };
  Episodes out;
  out.on_ns = time(need_quantity(in, "on", time_units()));
  out.off_ns = time(need_quantity(in, "off", time_units()));
  out.rest_ns = FixedValue{0};
  const auto range = [&in](std::string_view key, int most, int& low, int& high) {
    const auto member = in.find(key);
    if (!member) return false;
    const std::vector<JsonCursor> ends = member->items(2, "end of the range");
    if (!in.ok()) return false;
    low = ends[0].small_integer(1, most);
    high = ends[1].small_integer(low, most);
    return true;
  };
  if (range("cycles", kMostCycles, out.least_cycles, out.most_cycles)) {
    out.rest_ns = time(need_quantity(in, "rest", time_units()));
  } else if (find_quantity(in, "rest", time_units())) {
    in.fail("\"rest\" is only given with \"cycles\": how many until there is a rest");
  }
  if (in.ok() && Sampler(out.on_ns).mean() + Sampler(out.off_ns).mean() <= 0) {
    in.fail("a cycle of \"on\" and \"off\" takes no time");
  }
  if (const auto what = in.find("hit")) out.element = what->choice(kEpisodeElements);
  if (range("count", kMostRanks, out.least_hit, out.most_hit) &&
      out.element == EpisodeElement::kAll) {
    in.fail("\"count\" is only given with what is \"hit\": \"rank\", \"gpu\" or \"link\"");
  }
  return out;
}

DrawTiming timing(const JsonCursor& in) {
  const auto steps = in.find("steps");
  const auto episodes = in.find("episodes");
  if (steps && episodes) in.fail("found \"steps\" and \"episodes\"; give one of them");
  if (steps) {
    steps->only_keys({"every", "spread", "same"});
    RepeatedSteps out;
    out.every = steps->at("every").small_integer(1, kMostIteration);
    out.spread = static_cast<int>(steps->integer_or("spread", 0, {0, out.every - 1}));
    out.same = steps->boolean_or("same", true);
    return out;
  }
  if (episodes) return read_episodes(*episodes);
  return {};
}

void check_draw(const JsonCursor& in, const DrawModel& model) {
  if (!in.ok()) return;
  const bool ranks = model.scope == DrawScope::kRank || model.scope == DrawScope::kGpu;
  if (model.group > 1 && !ranks) {
    in.at("group").fail("this key is only given with the scope \"rank\" or \"gpu\"");
  }
  const bool factor = model.effect == DrawEffect::kFactor;
  if (model.target == DrawTarget::kInput && model.effect != DrawEffect::kExtra) {
    in.at("on").expected(
        "\"compute\", \"latency\", \"transfer\" or \"bandwidth\" for a factor; an input can "
        "be late by an \"extra\" time");
  }
  if (is_on_messages(model.target) && model.target != DrawTarget::kLatency && !factor) {
    in.at("on").expected("\"latency\" for a time; a transfer or bandwidth has a \"factor\"");
  }
  if (model.has_kinds() && model.target != DrawTarget::kCompute) {
    in.at("on").expected("\"compute\" where kinds of tasks have their own distribution");
  }
  const auto* episodes = std::get_if<Episodes>(&model.timing);
  if (model.effect == DrawEffect::kHold &&
      (model.target != DrawTarget::kLatency || episodes == nullptr)) {
    in.fail(
        "a \"hold\" is on \"latency\" and has \"episodes\": while one lasts, no message "
        "passes");
  }
  if (episodes != nullptr && model.is_static) {
    in.at("static").fail("a draw of an episode holds for the episode; leave \"static\" out");
  }
  if (episodes != nullptr && model.target == DrawTarget::kInput &&
      episodes->element != EpisodeElement::kAll) {
    in.at("episodes").fail("an input has no ranks or links to be hit; leave \"hit\" out");
  }
  const bool messages = is_on_messages(model.target);
  if (episodes != nullptr && episodes->element == EpisodeElement::kLinkPair && !messages) {
    in.at("episodes").fail("a task is on no link; \"hit\" is \"rank\" or \"gpu\"");
  }
}

}  // namespace

DrawModel read_draw_model(const JsonCursor& in, ModelWord word, const Scenario& scenario) {
  check_draw_keys(in, word);
  DrawModel out;
  out.effect = word == ModelWord::kFactor  ? DrawEffect::kFactor
               : word == ModelWord::kExtra ? DrawEffect::kExtra
                                           : DrawEffect::kHold;
  out.target = in.at("on").choice(kTargets);
  out.scope = scope(in, out.target);
  out.group = static_cast<int>(in.integer_or("group", 1, {1, kMostRanks}));
  out.is_static = in.boolean_or("static", false);
  out.selection = selection(in, out.target, scenario);
  out.timing = timing(in);
  if (const auto probability = in.find("probability")) {
    out.probability = read_fraction(*probability, 1);
  }
  read_draws(in, out);
  out.known = in.boolean_or("known", out.is_static || (out.scope == DrawScope::kMicrobatch &&
                                                       out.target == DrawTarget::kCompute));
  out.origin = read_origin(in);
  check_draw(in, out);
  return out;
}

}  // namespace rrfp
