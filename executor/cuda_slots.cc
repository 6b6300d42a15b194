#include "executor/cuda_slots.h"

#include <algorithm>
#include <limits>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

// All blocks of one length.
struct Length {
  std::size_t bytes = 0;
  std::size_t blocks = 0;
  std::int64_t least_counted_bytes = std::numeric_limits<std::int64_t>::max();
};

std::vector<Length> lengths_of(std::vector<SlotDemand> demands) {
  std::sort(demands.begin(), demands.end(),
            [](const SlotDemand& a, const SlotDemand& b) { return a.bytes < b.bytes; });
  std::vector<Length> lengths;
  for (const SlotDemand& demand : demands) {
    RRFP_CHECK(demand.bytes > 0 && demand.counted_bytes > 0);
    if (lengths.empty() || lengths.back().bytes != demand.bytes) lengths.push_back({demand.bytes});
    Length& last = lengths.back();
    ++last.blocks;
    last.least_counted_bytes = std::min(last.least_counted_bytes, demand.counted_bytes);
  }
  return lengths;
}

// Of the cheapest way to cut the lengths up to this one into classes, the last class.
struct Cut {
  std::size_t bytes = 0;  // of all slots
  std::size_t first = 0;
  std::size_t slots = 0;
};

}  // namespace

std::vector<SlotClass> slot_classes(std::vector<SlotDemand> demands,
                                    std::optional<std::int64_t> budget_bytes) {
  const std::vector<Length> lengths = lengths_of(std::move(demands));
  std::vector<Cut> cuts(lengths.size());
  for (std::size_t last = 0; last < lengths.size(); ++last) {
    Length shared;
    cuts[last].bytes = std::numeric_limits<std::size_t>::max();
    for (std::size_t first = last + 1; first-- > 0;) {
      shared.blocks += lengths[first].blocks;
      shared.least_counted_bytes =
          std::min(shared.least_counted_bytes, lengths[first].least_counted_bytes);
      std::size_t slots = shared.blocks;
      if (budget_bytes) {
        slots = std::min(slots, static_cast<std::size_t>(std::max<std::int64_t>(*budget_bytes, 0) /
                                                         shared.least_counted_bytes));
      }
      const std::size_t bytes =
          slots * lengths[last].bytes + (first > 0 ? cuts[first - 1].bytes : 0);
      if (bytes < cuts[last].bytes) cuts[last] = {bytes, first, slots};
    }
  }
  std::vector<SlotClass> classes;
  for (std::size_t end = lengths.size(); end > 0; end = cuts[end - 1].first) {
    classes.push_back({lengths[end - 1].bytes, cuts[end - 1].slots});
  }
  std::reverse(classes.begin(), classes.end());
  return classes;
}

}  // namespace rrfp
