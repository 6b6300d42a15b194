#include "experiments/variability_option.h"

#include <algorithm>
#include <string_view>

#include "traces/json_writer.h"
#include "traces/preset.h"

namespace rrfp {

namespace {

// One list: presets, and the entry.
std::string world_text(const std::vector<std::string>& presets, const std::string& entry,
                       const std::string& indent) {
  std::string list;
  const auto add = [&list](const std::string& item) {
    list += (list.empty() ? "\n" : ",\n") + item;
  };
  for (const std::string& preset : presets) {
    add(indent + "  " + to_text(JsonValue(preset), JsonLayout::kCompact));
  }
  if (!entry.empty()) add(entry);
  return "[" + list + "\n" + indent + "]";
}

}  // namespace

Result<Worlds> read_worlds(const Options& options) {
  const Result<std::vector<std::string>> given = options.list(kVariabilityRow.name);
  if (!given.ok()) return given.error();
  Worlds worlds;
  for (const std::string& world : *given) {
    std::vector<std::string>& names = worlds.emplace_back();
    for (std::size_t begin = 0; begin <= world.size();) {
      const std::size_t plus = std::min(world.find('+', begin), world.size());
      names.push_back(world.substr(begin, plus - begin));
      begin = plus + 1;
      if (find_preset(names.back()) == nullptr) {
        std::vector<std::string_view> known;
        for (const Preset* preset : preset_table()) known.push_back(preset->name);
        return not_one_of("--variability", names.back(), known);
      }
    }
  }
  return worlds;
}

std::string variability_text(const Worlds& worlds,
                             const std::function<std::string(const std::string& indent)>& entry) {
  if (worlds.size() == 1) {
    return "  \"variability\": " + world_text(worlds.front(), entry("    "), "  ") + ",\n";
  }
  std::string text = "  \"variability\": [],\n  \"grid\": {\"/variability\": [\n";
  for (std::size_t i = 0; i < worlds.size(); ++i) {
    text += "    " + world_text(worlds[i], entry("      "), "    ") +
            (i + 1 < worlds.size() ? ",\n" : "\n");
  }
  return text + "  ]},\n";
}

}  // namespace rrfp
