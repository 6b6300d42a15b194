#include "traces/scenario_budget.h"

#include <algorithm>
#include <array>

#include "scheduler_core/nearest.h"
#include "traces/json_writer.h"
#include "traces/quantity.h"

namespace rrfp {

namespace {

/// What a peak may depend on.
struct Place {
  std::int64_t ranks;
  std::int64_t rank;
  std::int64_t chunks;  ///< stages per rank
  std::int64_t microbatches;
};

struct Peak {
  std::string_view schedule;
  std::int64_t (*activations)(const Place& place);
};

// Peaks with enough microbatches.
constexpr std::array<Peak, 8> kPeaks = {{
    {"gpipe", [](const Place& at) { return at.microbatches * at.chunks; }},
    {"1f1b", [](const Place& at) { return at.ranks - at.rank; }},
    {"eager-1f1b", [](const Place& at) { return 2 * (at.ranks - at.rank) - 1; }},
    {"zb-h1", [](const Place& at) { return at.ranks; }},
    {"zb-h2", [](const Place& at) { return 2 * at.ranks - 1; }},
    {"interleaved-1f1b",
     [](const Place& at) { return 2 * (at.ranks - at.rank - 1) + (at.chunks - 1) * at.ranks + 1; }},
    {"looped-bfs", [](const Place& at) { return at.microbatches * at.chunks; }},
    {"zb-v", [](const Place& at) { return 2 * at.ranks; }},
}};

std::array<std::string_view, kPeaks.size()> peak_names() {
  std::array<std::string_view, kPeaks.size()> names;
  for (std::size_t i = 0; i < kPeaks.size(); ++i) names[i] = kPeaks[i].schedule;
  return names;
}

Budget read_activations(const JsonCursor& in, const ProgramSpec& pipeline) {
  constexpr IntegerRange kRange{1, std::int64_t{1} << 40};
  const auto ranks = static_cast<std::size_t>(pipeline.ranks);
  Budget budget;
  if (in.value().array() != nullptr) {
    in.append_integers(budget.activations, ranks, "rank", kRange);
  } else if (const std::string* word = in.value().string()) {
    budget.like = *word;
    if (peak_activations(*word, pipeline).empty()) {
      std::string all;
      for (const std::string_view known : by_nearness(*word, peak_names())) {
        all += (all.empty() ? "\"" : ", \"") + std::string(known) + "\"";
      }
      in.expected("an integer, one per rank, or the peak of one of " + all);
    }
  } else {
    budget.activations.assign(ranks, in.integer(kRange));
  }
  return budget;
}

Budget read_bytes(const Quantity& given, int ranks) {
  Budget budget;
  if (given.in.value().is_null()) {
    budget.bytes.assign(static_cast<std::size_t>(ranks), std::nullopt);
    return budget;
  }
  if (given.in.value().array() == nullptr) {
    budget.bytes.assign(static_cast<std::size_t>(ranks), given.value());
    return budget;
  }
  for (const JsonCursor& item : given.in.items(static_cast<std::size_t>(ranks), "rank")) {
    budget.bytes.push_back(item.value().is_null() ? std::optional<std::int64_t>()
                                                  : Quantity{item, given.scale}.value());
  }
  return budget;
}

}  // namespace

std::vector<std::int64_t> peak_activations(std::string_view schedule, const ProgramSpec& pipeline) {
  for (const Peak& peak : kPeaks) {
    if (peak.schedule != schedule) continue;
    std::vector<std::int64_t> activations;
    std::vector<std::int64_t> chunks(static_cast<std::size_t>(pipeline.ranks));
    for (const StageSpec& stage : pipeline.stages) ++chunks[static_cast<std::size_t>(stage.rank)];
    for (int rank = 0; rank < pipeline.ranks; ++rank) {
      const std::int64_t own = chunks[static_cast<std::size_t>(rank)];
      const std::int64_t needed =
          peak.activations({pipeline.ranks, rank, own, pipeline.microbatches});
      activations.push_back(std::min(needed, own * pipeline.microbatches));
    }
    return activations;
  }
  return {};
}

std::optional<Budget> read_budget(const JsonCursor& in, const ProgramSpec& pipeline) {
  const auto activations = in.find("budget_activations");
  const auto bytes = find_quantity(in, "budget", size_units());
  if (activations && bytes) {
    in.fail("found a budget in bytes and one in activations; give one of them");
  }
  if (activations) return read_activations(*activations, pipeline);
  if (bytes) return read_bytes(*bytes, pipeline.ranks);
  return std::nullopt;
}

void add_budget(JsonValue& out, const Budget& budget) {
  if (!budget.like.empty()) {
    out.add("budget_activations", JsonValue(budget.like));
  } else if (!budget.activations.empty()) {
    out.add("budget_activations", json_integers(budget.activations));
  } else if (!budget.bytes.empty()) {
    JsonArray list;
    for (const auto& bytes : budget.bytes) list.push_back(bytes ? JsonValue(*bytes) : JsonValue());
    out.add("budget_bytes", JsonValue(std::move(list)));
  }
}

}  // namespace rrfp
