#include "traces/variability_parts.h"

#include <string>

namespace rrfp {

std::vector<Kind> read_kinds(const JsonCursor& in) {
  std::vector<Kind> out;
  const auto list = in.find("tasks");
  if (!list) return out;
  for (const JsonCursor& item : list->items()) out.push_back(item.choice(kTaskKinds));
  if (in.ok() && out.empty()) list->expected("at least one of \"F\", \"B\", \"I\", \"W\"");
  return out;
}

std::vector<int> read_indices(const JsonCursor& in, std::string_view key, int most) {
  std::vector<int> out;
  const auto list = in.find(key);
  if (!list) return out;
  for (const JsonCursor& item : list->items()) out.push_back(item.small_integer(0, most));
  if (in.ok() && out.empty()) list->expected("at least one number");
  return out;
}

ModelOrigin read_origin(const JsonCursor& in) {
  return {in.string_or("from_preset", ""), in.boolean_or("modelled", false)};
}

std::optional<Link> first_link(const Scenario& scenario) {
  const std::vector<StageSpec>& stages = scenario.pipeline.stages;
  for (const StageSpec& stage : stages) {
    for (const int predecessor : stage.predecessors) {
      const int from = stages[static_cast<std::size_t>(predecessor)].rank;
      if (from != stage.rank) return Link{from, stage.rank};
    }
  }
  return std::nullopt;
}

namespace {

bool any_message(const Scenario& scenario, Link link) {
  const std::vector<StageSpec>& stages = scenario.pipeline.stages;
  for (const StageSpec& stage : stages) {
    for (const int predecessor : stage.predecessors) {
      const int before = stages[static_cast<std::size_t>(predecessor)].rank;
      if ((before == link.from && stage.rank == link.to) ||
          (before == link.to && stage.rank == link.from)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Link read_link(const JsonCursor& in, const Scenario& scenario) {
  const std::vector<JsonCursor> ends = in.items(2, "end of the link");
  if (!in.ok()) return {};
  const int most = scenario.pipeline.ranks - 1;
  const Link link{ends[0].small_integer(0, most), ends[1].small_integer(0, most)};
  if (in.ok() && !any_message(scenario, link)) {
    in.fail("no message goes from rank " + std::to_string(link.from) + " to rank " +
            std::to_string(link.to) + "; expected two ranks that hold neighbouring stages");
  }
  return link;
}

}  // namespace rrfp
