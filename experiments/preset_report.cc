#include "experiments/preset_report.h"

#include <utility>

#include "experiments/text_list.h"
#include "experiments/text_table.h"
#include "scheduler_core/check.h"
#include "traces/json_writer.h"
#include "traces/quantity.h"
#include "traces/variability_file.h"

namespace rrfp {

namespace {

constexpr std::string_view kModelled = "modelled: no public measurement stands behind it";

// What the models of a preset are shown for.
Scenario example_scenario() {
  Scenario scenario;
  scenario.pipeline.ranks = 8;
  scenario.pipeline.microbatches = 32;
  for (int stage = 0; stage < scenario.pipeline.ranks; ++stage) {
    StageSpec spec;
    spec.rank = stage;
    if (stage > 0) spec.predecessors = {stage - 1};
    scenario.pipeline.stages.push_back(std::move(spec));
  }
  scenario.forward_ns.values = {10'000'000};
  scenario.backward_ns.values = {20'000'000};
  scenario.data_parallel.replicas = 2;
  return scenario;
}

std::string_view unit_of(std::string_view name) {
  if (name.ends_with("_ms")) return "ms";
  return name.ends_with("_s") ? "s" : "";
}

// A default that the example can spell out; null where it is best left out.
JsonValue example_value(const PresetParameter& parameter, const Scenario& scenario) {
  switch (parameter.type) {
    case PresetValueType::kNumber:
      return json_fraction(parameter.number);
    case PresetValueType::kInteger:
      return JsonValue(static_cast<int>(parameter.number));
    case PresetValueType::kRank:
      return JsonValue(scenario.pipeline.ranks / 2);
    case PresetValueType::kReplica:
      return JsonValue(0);
    case PresetValueType::kLink:
      return JsonValue(JsonArray{JsonValue(0), JsonValue(1)});
    case PresetValueType::kText:
      break;
  }
  return JsonValue();
}

JsonValue example_entry(const Preset& preset) {
  const Scenario scenario = example_scenario();
  JsonValue entry{JsonObject()};
  entry.add("preset", JsonValue(preset.name));
  for (const PresetParameter& parameter : preset.parameters) {
    JsonValue value = example_value(parameter, scenario);
    if (!value.is_null()) entry.add(parameter.name, std::move(value));
  }
  return entry;
}

std::vector<VariabilityModel> example_models(const Preset& preset) {
  const JsonValue entry = example_entry(preset);
  JsonErrors errors("example");
  std::vector<VariabilityModel> models;
  read_preset(JsonCursor(errors, entry), "", example_scenario(), models);
  RRFP_CHECK(errors.ok());
  return models;
}

// As people write it on one line, with spaces.
std::string one_line(const JsonValue& value) {
  std::string text;
  for (const char c : to_text(value, JsonLayout::kReadable)) {
    // Neither ends of lines nor what indents them.
    if ((c == '\n' || c == ' ') &&
        (text.ends_with(' ') || text.ends_with('[') || text.ends_with('{'))) {
      continue;
    }
    if ((c == '}' || c == ']') && text.ends_with(' ')) text.pop_back();
    text += c == '\n' ? ' ' : c;
  }
  return text;
}

std::string parameters_in_short(const Preset& preset) {
  std::string text;
  for (const PresetParameter& parameter : preset.parameters) {
    add_to_list(text, std::string(parameter.name) + " [" + std::string(parameter.otherwise) + "]");
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::string preset_note(const Scenario& scenario) {
  const std::string presets = describe_presets(scenario);
  if (presets.empty()) return "";
  const bool modelled = presets.find("(modelled)") != std::string::npos;
  return "note: presets: " + presets +
         (modelled ? "; modelled: no public measurement stands behind it\n" : "\n");
}

JsonValue preset_uses_to_json(const Scenario& scenario) {
  JsonArray uses;
  for (const ModelOrigin& origin : presets_of(scenario)) {
    JsonValue one{JsonObject()};
    one.add("name", JsonValue(origin.preset));
    one.add("modelled", JsonValue(origin.modelled));
    uses.push_back(std::move(one));
  }
  return JsonValue(std::move(uses));
}

Result<const Preset*> named_preset(const std::string& name) {
  const Preset* preset = find_preset(name);
  if (preset == nullptr) return Error{unknown_preset(name)};
  return preset;
}

std::string list_presets() {
  std::string text;
  for (const Preset* preset : preset_table()) {
    text += std::string(preset->name) + (preset->modelled ? "  (modelled)" : "") + "\n";
    text += "  " + std::string(preset->summary) + "\n";
    text += "  parameters: " + parameters_in_short(*preset) + "\n";
    text += "  scope: " + std::string(preset->scope) + "\n";
    text += "  source: " + std::string(preset->source) + "\n\n";
  }
  return text +
         "In brackets: the default. Every preset also takes \"known\": whether schedulers know its "
         "draws beforehand.\nFactors are relative to the base times of the scenario. (modelled): "
         "no "
         "public measurement stands behind it.\n`rrfp presets NAME` shows one in full.\n";
}

JsonValue preset_to_json(const Preset& preset) {
  JsonValue out{JsonObject()};
  out.add("name", JsonValue(preset.name));
  out.add("summary", JsonValue(preset.summary));
  out.add("scope", JsonValue(preset.scope));
  out.add("source", JsonValue(preset.source));
  out.add("modelled", JsonValue(preset.modelled));
  JsonArray parameters;
  for (const PresetParameter& parameter : preset.parameters) {
    JsonValue one{JsonObject()};
    one.add("name", JsonValue(parameter.name));
    one.add("unit", JsonValue(unit_of(parameter.name)));
    one.add("default", JsonValue(parameter.otherwise));
    one.add("meaning", JsonValue(parameter.meaning));
    parameters.push_back(std::move(one));
  }
  out.add("parameters", JsonValue(std::move(parameters)));
  out.add("example", example_entry(preset));
  out.add("models", variability_to_json(example_models(preset)));
  return out;
}

JsonValue presets_to_json() {
  JsonArray presets;
  for (const Preset* preset : preset_table()) presets.push_back(preset_to_json(*preset));
  JsonValue out{JsonObject()};
  out.add("schema", JsonValue("rrfp.presets/1"));
  out.add("presets", JsonValue(std::move(presets)));
  return out;
}

std::string describe_preset(const Preset& preset) {
  std::string text = std::string(preset.name) + ": " + std::string(preset.summary) + "\n";
  if (preset.modelled) text += "  " + std::string(kModelled) + "\n";
  text += "scope:  " + std::string(preset.scope) + "\n";
  text += "source: " + std::string(preset.source) + "\n";
  if (!preset.parameters.empty()) {
    TextTable table({"parameter", "default", "unit", "what it is"});
    for (const std::size_t words : {1, 2, 3}) table.align_left(words);
    for (const PresetParameter& parameter : preset.parameters) {
      table.add({std::string(parameter.name), std::string(parameter.otherwise),
                 std::string(unit_of(parameter.name)), std::string(parameter.meaning)});
    }
    text += "\n" + table.text();
  }
  text += "\nin \"variability\":\n  " + one_line(example_entry(preset)) + "\n";
  const std::vector<VariabilityModel> models = example_models(preset);
  text += "\nwhich stands, with 8 ranks and 2 replicas, for";
  text += models.empty() ? " nothing\n" : ":\n";
  for (const VariabilityModel& model : models) text += "  " + one_line(model_to_json(model)) + "\n";
  return text;
}

}  // namespace rrfp
