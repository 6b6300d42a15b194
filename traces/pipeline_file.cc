#include "traces/pipeline_file.h"

#include <algorithm>

#include "traces/case_words.h"

namespace rrfp {

std::vector<StageSpec> read_stages(const JsonCursor& in, int ranks) {
  std::vector<StageSpec> stages;
  for (const JsonCursor& entry : in.items()) {
    if (!in.ok()) break;
    const int number = static_cast<int>(stages.size());
    entry.only_keys({"rank", "predecessors", "backward"});
    StageSpec stage;
    stage.rank = entry.at("rank").small_integer(0, ranks - 1);
    if (const auto list = entry.find("predecessors")) {
      for (const JsonCursor& before : list->items()) {
        if (number == 0) before.expected("nothing: stage 0 has no predecessors");
        stage.predecessors.push_back(before.small_integer(0, std::max(number - 1, 0)));
      }
    } else if (number > 0) {
      stage.predecessors.push_back(number - 1);
    }
    if (const auto backward = entry.find("backward")) {
      stage.backward = backward->choice(kBackwards);
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

JsonValue stages_to_json(const std::vector<StageSpec>& stages) {
  JsonArray list;
  for (const StageSpec& spec : stages) {
    JsonValue stage{JsonObject()};
    stage.add("rank", JsonValue(spec.rank));
    JsonArray before;
    for (const int predecessor : spec.predecessors) before.emplace_back(predecessor);
    stage.add("predecessors", JsonValue(std::move(before)));
    if (spec.backward != Backward::kFull) {
      stage.add("backward", JsonValue(to_word(kBackwards, spec.backward)));
    }
    list.push_back(std::move(stage));
  }
  return JsonValue(std::move(list));
}

JsonValue link_delays_to_json(const std::vector<LinkDelay>& delays, const std::string& time_key) {
  JsonArray list;
  for (const LinkDelay& delay : delays) {
    JsonValue entry{JsonObject()};
    entry.add("from", JsonValue(delay.from_rank));
    entry.add("to", JsonValue(delay.to_rank));
    entry.add(time_key, JsonValue(delay.ns));
    list.push_back(std::move(entry));
  }
  return JsonValue(std::move(list));
}

}  // namespace rrfp
