// What the readers of the models of "variability" share.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "traces/json_cursor.h"
#include "traces/scenario.h"
#include "traces/variability_words.h"

namespace rrfp {

/// A "factor", "extra" or "hold".
DrawModel read_draw_model(const JsonCursor& in, ModelWord word, const Scenario& scenario);

/// Of the member "tasks"; empty where it is absent.
std::vector<Kind> read_kinds(const JsonCursor& in);

/// From 0 to `most`; empty where it is absent.
std::vector<int> read_indices(const JsonCursor& in, std::string_view key, int most);

/// [from, to]: ranks between which there are messages.
Link read_link(const JsonCursor& in, const Scenario& scenario);

/// The first that a stage sends along; nothing where all stages are on one rank.
std::optional<Link> first_link(const Scenario& scenario);

/// Of the members "from_preset" and "modelled".
ModelOrigin read_origin(const JsonCursor& in);

}  // namespace rrfp
