#include "traces/preset.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "scheduler_core/check.h"
#include "scheduler_core/nearest.h"
#include "scheduler_core/suggestion.h"
#include "traces/preset_models.h"
#include "traces/quantity.h"
#include "traces/variability_parts.h"

namespace rrfp {

namespace {

constexpr std::array kPresets = {
    &kIdealPreset,           &kHealthyDedicatedPreset,   &kHealthyNoisyPreset,
    &kGpuSpreadPreset,       &kLemonGpuPreset,           &kSlowWorkerPreset,
    &kSlowHostPreset,        &kDiurnalThermalPreset,     &kHeavyLastStagePreset,
    &kSeqlenLongtailPreset,  &kSeqlenEmpiricalPreset,    &kMmEncoderBurstPreset,
    &kMoeSkewPreset,         &kLinkDegradedStaticPreset, &kLinkDegradedDynamicPreset,
    &kFabricCongestedPreset, &kFailslowEpisodePreset,    &kLinkFlapPreset,
    &kGcStaggeredPreset,     &kGcPlannedPreset,          &kDataloaderStallPreset,
};

PresetValue read_value(const JsonCursor& in, const PresetParameter& parameter,
                       const Scenario& scenario) {
  PresetValue value;
  switch (parameter.type) {
    case PresetValueType::kNumber:
      value.number = read_fraction(in, parameter.most, parameter.least);
      break;
    case PresetValueType::kInteger:
      value.number =
          in.small_integer(static_cast<int>(parameter.least), static_cast<int>(parameter.most));
      break;
    case PresetValueType::kRank:
      value.number = in.small_integer(0, scenario.pipeline.ranks - 1);
      break;
    case PresetValueType::kReplica:
      value.number = in.small_integer(0, scenario.data_parallel.replicas - 1);
      break;
    case PresetValueType::kLink:
      value.link = read_link(in, scenario);
      break;
    case PresetValueType::kText:
      value.text = in.string();
      break;
  }
  return value;
}

PresetValue default_value(const JsonCursor& entry, const PresetParameter& parameter,
                          const Scenario& scenario) {
  PresetValue value;
  value.number = parameter.number;
  if (parameter.type == PresetValueType::kRank) value.number = scenario.pipeline.ranks / 2;
  if (parameter.type == PresetValueType::kLink) {
    const std::optional<Link> link = first_link(scenario);
    if (!link) entry.fail("there is no link: all stages are on one rank");
    value.link = link.value_or(Link());
  }
  return value;
}

const Preset* named_preset(const JsonCursor& in) {
  const std::string name = in.string();
  if (!in.ok()) return nullptr;
  const Preset* preset = find_preset(name);
  if (preset == nullptr) in.fail(unknown_preset(name));
  return preset;
}

void set_known(VariabilityModel& model, bool known) {
  if (auto* draw = std::get_if<DrawModel>(&model)) draw->known = known;
  if (auto* lengths = std::get_if<MicrobatchLengths>(&model)) lengths->known = known;
  if (auto* wave = std::get_if<ComputeWave>(&model)) wave->known = known;
}

void set_origin(VariabilityModel& model, const ModelOrigin& origin) {
  if (auto* draw = std::get_if<DrawModel>(&model)) draw->origin = origin;
  if (auto* lengths = std::get_if<MicrobatchLengths>(&model)) lengths->origin = origin;
  if (auto* wave = std::get_if<ComputeWave>(&model)) wave->origin = origin;
}

// The values of an entry, defaults filled in; files get their folder.
std::vector<PresetValue> values_of(const JsonCursor& entry, const Preset& preset,
                                   const std::string& folder, const Scenario& scenario) {
  std::vector<PresetValue> values;
  for (const PresetParameter& parameter : preset.parameters) {
    const auto given = entry.find(parameter.name);
    values.push_back(given ? read_value(*given, parameter, scenario)
                           : default_value(entry, parameter, scenario));
    std::string& text = values.back().text;
    if (parameter.name == "file" && !text.empty() && !text.starts_with('/')) text = folder + text;
  }
  return values;
}

}  // namespace

std::span<const Preset* const> preset_table() { return kPresets; }

const Preset* find_preset(std::string_view name) {
  for (const Preset* preset : kPresets) {
    if (preset->name == name) return preset;
  }
  return nullptr;
}

std::string unknown_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Preset* preset : kPresets) names.push_back(preset->name);
  return "there is no preset " + in_quotes(name) + suggestion(name, names) +
         " `rrfp presets` lists them";
}

const PresetValue& PresetCall::value(std::string_view name) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].name == name) return values_[i];
  }
  RRFP_CHECK(false);
}

void read_preset(const JsonCursor& entry, const std::string& folder, const Scenario& scenario,
                 std::vector<VariabilityModel>& out) {
  const bool by_name = entry.value().string() != nullptr;
  const Preset* preset = named_preset(by_name ? entry : entry.at("preset"));
  if (preset == nullptr) return;
  if (!by_name) {
    std::vector<std::string_view> keys = {"preset", "known"};
    for (const PresetParameter& parameter : preset->parameters) keys.push_back(parameter.name);
    entry.only_keys(keys);
  }
  const PresetCall call(scenario, preset->parameters, values_of(entry, *preset, folder, scenario));
  const auto known = entry.find("known");
  const bool is_known = known && known->boolean();
  if (!entry.ok()) return;
  Result<std::vector<VariabilityModel>> models = preset->expand(call);
  if (!models.ok()) return entry.fail(std::string(preset->name) + ": " + models.error().message);
  for (VariabilityModel& model : *models) {
    set_origin(model, {std::string(preset->name), preset->modelled});
    if (known) set_known(model, is_known);
    out.push_back(std::move(model));
  }
}

std::vector<ModelOrigin> presets_of(const Scenario& scenario) {
  std::vector<ModelOrigin> found;
  for (const VariabilityModel& model : scenario.variability) {
    const ModelOrigin* origin = origin_of(model);
    if (origin == nullptr || *origin == ModelOrigin()) continue;
    if (std::find(found.begin(), found.end(), *origin) == found.end()) found.push_back(*origin);
  }
  return found;
}

std::string describe_presets(const Scenario& scenario) {
  std::string text;
  for (const ModelOrigin& origin : presets_of(scenario)) {
    if (!text.empty()) text += ", ";
    text += origin.preset.empty() ? "a model of its own" : origin.preset;
    if (origin.modelled) text += " (modelled)";
  }
  return text;
}

}  // namespace rrfp
