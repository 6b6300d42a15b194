#include <string>
#include <utility>

#include "traces/distribution_file.h"
#include "traces/quantity.h"
#include "traces/variability_file.h"
#include "traces/variability_words.h"

namespace rrfp {

namespace {

JsonValue integers(const std::vector<int>& numbers) {
  JsonArray out;
  for (const int number : numbers) out.emplace_back(number);
  return JsonValue(std::move(out));
}

JsonValue kinds_to_json(const std::vector<Kind>& kinds) {
  JsonArray out;
  for (const Kind kind : kinds) out.emplace_back(to_word(kTaskKinds, kind));
  return JsonValue(std::move(out));
}

JsonValue pair(int first, int second) { return integers({first, second}); }

void add_origin(JsonValue& out, const ModelOrigin& origin) {
  if (!origin.preset.empty()) out.add("from_preset", JsonValue(origin.preset));
  if (origin.modelled) out.add("modelled", JsonValue(true));
}

void add_selection(JsonValue& out, const Selection& selection) {
  if (!selection.kinds.empty()) out.add("tasks", kinds_to_json(selection.kinds));
  if (!selection.stages.empty()) out.add("stages", integers(selection.stages));
  if (!selection.ranks.empty()) out.add("ranks", integers(selection.ranks));
  if (!selection.replicas.empty()) out.add("replicas", integers(selection.replicas));
  if (!selection.links.empty()) {
    JsonArray links;
    for (const Link& link : selection.links) links.push_back(pair(link.from, link.to));
    out.add("links", JsonValue(std::move(links)));
  }
  if (selection.iterations != IterationRange()) {
    JsonValue range{JsonObject()};
    range.add("from", JsonValue(selection.iterations.first));
    if (selection.iterations.last) range.add("to", JsonValue(*selection.iterations.last));
    out.add("iterations", std::move(range));
  }
  if (selection.first_of_iteration) out.add("first_of_iteration", JsonValue(true));
}

void add_timing(JsonValue& out, const DrawTiming& timing) {
  JsonValue inner{JsonObject()};
  if (const auto* steps = std::get_if<RepeatedSteps>(&timing)) {
    inner.add("every", JsonValue(steps->every));
    inner.add("spread", JsonValue(steps->spread));
    inner.add("same", JsonValue(steps->same));
    out.add("steps", std::move(inner));
  } else if (const auto* episodes = std::get_if<Episodes>(&timing)) {
    inner.add("on_ns", distribution_to_json(episodes->on_ns));
    inner.add("off_ns", distribution_to_json(episodes->off_ns));
    if (episodes->most_cycles > 0) {
      inner.add("cycles", pair(episodes->least_cycles, episodes->most_cycles));
      inner.add("rest_ns", distribution_to_json(episodes->rest_ns));
    }
    if (episodes->element != EpisodeElement::kAll) {
      inner.add("hit", JsonValue(to_word(kEpisodeElements, episodes->element)));
      inner.add("count", pair(episodes->least_hit, episodes->most_hit));
    }
    out.add("episodes", std::move(inner));
  }
}

// Adds the members that say what is drawn.
void add_draws(JsonValue& out, const DrawModel& model) {
  if (!model.has_kinds()) {
    const JsonValue one = distribution_to_json(model.distribution);
    const JsonMember& member = one.object()->front();
    return out.add(member.key, member.value);
  }
  for (const Choice<Kind>& kind : kTaskKinds) {
    const auto& distribution = model.by_kind[static_cast<std::size_t>(kind.value)];
    if (distribution) out.add(kind.word, distribution_to_json(*distribution));
  }
}

class Writer {
 public:
  JsonValue operator()(const LognormalCompute& model) const {
    JsonValue out = head(ModelWord::kLognormal, DrawTarget::kCompute);
    out.add("scope", JsonValue(to_word(kComputeScopes, model.scope)));
    out.add("cv", json_fraction(model.cv));
    out.add("known", JsonValue(model.known));
    return out;
  }

  JsonValue operator()(const LognormalLatency& model) const {
    JsonValue out = head(ModelWord::kLognormal, DrawTarget::kLatency);
    out.add("cv", json_fraction(model.cv));
    return out;
  }

  JsonValue operator()(const LatencySpikes& model) const {
    JsonValue out = head(ModelWord::kSpikes, DrawTarget::kLatency);
    out.add("probability", json_fraction(model.probability));
    out.add("extra_ns", JsonValue(model.extra_ns));
    return out;
  }

  JsonValue operator()(const DrawModel& model) const {
    const ModelWord word = model.effect == DrawEffect::kFactor  ? ModelWord::kFactor
                           : model.effect == DrawEffect::kExtra ? ModelWord::kExtra
                                                                : ModelWord::kHold;
    JsonValue out = head(word, model.target);
    out.add("scope", JsonValue(to_word(kDrawScopes, model.scope)));
    if (model.group != 1) out.add("group", JsonValue(model.group));
    if (model.is_static) out.add("static", JsonValue(true));
    add_selection(out, model.selection);
    add_timing(out, model.timing);
    if (model.probability != 1) out.add("probability", json_fraction(model.probability));
    if (model.effect == DrawEffect::kFactor) add_draws(out, model);
    if (model.effect == DrawEffect::kExtra) {
      JsonValue extra{JsonObject()};
      add_draws(extra, model);
      out.add("extra_ns", std::move(extra));
    }
    out.add("known", JsonValue(model.known));
    add_origin(out, model.origin);
    return out;
  }

  JsonValue operator()(const MicrobatchLengths& model) const {
    JsonValue out{JsonObject()};
    out.add("model", JsonValue(to_word(kModelWords, ModelWord::kLengths)));
    out.add("length", distribution_to_json(model.length));
    out.add("unit", json_fraction(model.unit));
    if (model.samples == 0) {
      out.add("pack", JsonValue(true));
    } else {
      out.add("samples", JsonValue(model.samples));
    }
    JsonArray costs;
    for (const LengthCost& cost : model.costs) {
      JsonValue one{JsonObject()};
      if (!cost.kinds.empty()) one.add("tasks", kinds_to_json(cost.kinds));
      if (!cost.stages.empty()) one.add("stages", integers(cost.stages));
      one.add("constant", json_fraction(cost.constant));
      one.add("linear", json_fraction(cost.linear));
      one.add("quadratic", json_fraction(cost.quadratic));
      costs.push_back(std::move(one));
    }
    out.add("costs", JsonValue(std::move(costs)));
    out.add("messages", JsonValue(model.messages));
    out.add("known", JsonValue(model.known));
    add_origin(out, model.origin);
    return out;
  }

  JsonValue operator()(const ComputeWave& model) const {
    JsonValue out = head(ModelWord::kWave, DrawTarget::kCompute);
    out.add("amplitude", json_fraction(model.amplitude));
    out.add("period_ns", JsonValue(model.period_ns));
    out.add("phase", json_fraction(model.phase));
    out.add("known", JsonValue(model.known));
    add_origin(out, model.origin);
    return out;
  }

 private:
  static JsonValue head(ModelWord word, DrawTarget target) {
    JsonValue out{JsonObject()};
    out.add("model", JsonValue(to_word(kModelWords, word)));
    out.add("on", JsonValue(to_word(kTargets, target)));
    return out;
  }
};

}  // namespace

JsonValue model_to_json(const VariabilityModel& model) { return std::visit(Writer(), model); }

JsonValue variability_to_json(const std::vector<VariabilityModel>& models) {
  JsonArray out;
  for (const VariabilityModel& model : models) out.push_back(model_to_json(model));
  return JsonValue(std::move(out));
}

}  // namespace rrfp
