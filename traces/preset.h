// The library of presets: named, sourced descriptions of what varies in real
// clusters. A preset is a list of models with parameters filled in, nothing
// more: whatever it does can be written by hand in "variability".
//
// Invariants
//  1. Each model of a preset carries its name (ModelOrigin), and whether it is
//     modelled: no public measurement stands behind it. Outputs say so.
//  2. The same entry in the same scenario expands to the same models.
//
// Thread safety: pure functions but for files that a parameter names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_core/program.h"
#include "traces/json_cursor.h"
#include "traces/scenario.h"
#include "traces/variability.h"

namespace rrfp {

enum class PresetValueType : std::uint8_t { kNumber, kInteger, kRank, kReplica, kLink, kText };

/// Its unit is the end of its name; without one it is a plain number or factor.
struct PresetParameter {
  std::string_view name;
  PresetValueType type = PresetValueType::kNumber;
  std::string_view otherwise;  ///< the default, as people read it
  double number = 0;           ///< the default of a number
  double least = 0;
  double most = 0;
  std::string_view meaning;
};

/// What a parameter was given, or its default.
struct PresetValue {
  double number = 0;
  Link link;
  std::string text;
};

/// One entry of a scenario, while it is expanded.
class PresetCall {
 public:
  PresetCall(const Scenario& scenario, std::span<const PresetParameter> parameters,
             std::vector<PresetValue> values)
      : scenario_(scenario), parameters_(parameters), values_(std::move(values)) {}

  const Scenario& scenario() const { return scenario_; }
  /// REQUIRES: the preset has a parameter of that name.
  double number(std::string_view name) const { return value(name).number; }
  int integer(std::string_view name) const { return static_cast<int>(value(name).number); }
  Link link(std::string_view name) const { return value(name).link; }
  const std::string& text(std::string_view name) const { return value(name).text; }

 private:
  const PresetValue& value(std::string_view name) const;

  const Scenario& scenario_;
  std::span<const PresetParameter> parameters_;
  std::vector<PresetValue> values_;
};

struct Preset {
  std::string_view name;
  std::string_view summary;
  std::string_view scope;   ///< over what its draws are shared, how F, I and W are coupled
  std::string_view source;  ///< with how well it is known: measured, primary source, summary
  bool modelled = false;
  std::span<const PresetParameter> parameters;
  Result<std::vector<VariabilityModel>> (*expand)(const PresetCall& call) = nullptr;
};

/// In the order in which they are listed.
std::span<const Preset* const> preset_table();

/// Null where there is none of that name.
const Preset* find_preset(std::string_view name);

/// The message for a name that is no preset's: names the nearest.
std::string unknown_preset(std::string_view name);

/// Adds the models that `entry` stands for: a preset's name, or an object with
/// "preset", its parameters and "known". Files are looked for in `folder`.
void read_preset(const JsonCursor& entry, const std::string& folder, const Scenario& scenario,
                 std::vector<VariabilityModel>& out);

/// The presets that a scenario's models come from, each once.
std::vector<ModelOrigin> presets_of(const Scenario& scenario);

/// "healthy-dedicated, dataloader-stall (modelled)"; empty without presets.
std::string describe_presets(const Scenario& scenario);

}  // namespace rrfp
