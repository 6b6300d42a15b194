#include "executor/cuda_slots.h"

#include <algorithm>
#include <limits>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

// All blocks of one length.
struct Length {
  std::size_t bytes = 0;
  std::vector<Moments> out;
  std::int64_t least_counted_bytes = std::numeric_limits<std::int64_t>::max();
};

std::vector<Length> lengths_of(std::vector<SlotDemand> demands) {
  std::sort(demands.begin(), demands.end(),
            [](const SlotDemand& a, const SlotDemand& b) { return a.bytes < b.bytes; });
  std::vector<Length> lengths;
  for (const SlotDemand& demand : demands) {
    RRFP_CHECK(demand.bytes > 0 && demand.counted_bytes > 0);
    RRFP_CHECK(0 <= demand.out.from && demand.out.from < demand.out.until);
    if (lengths.empty() || lengths.back().bytes != demand.bytes) {
      lengths.push_back({demand.bytes, {}});
    }
    Length& last = lengths.back();
    last.out.push_back(demand.out);
    last.least_counted_bytes = std::min(last.least_counted_bytes, demand.counted_bytes);
  }
  return lengths;
}

// How many blocks may be out at a time.
class Overlap {
 public:
  explicit Overlap(int moments) : out_(static_cast<std::size_t>(moments)) {}

  void add(const Moments& block) {
    for (int moment = block.from; moment < block.until; ++moment) {
      most_ = std::max(most_, ++out_[static_cast<std::size_t>(moment)]);
    }
  }
  std::size_t most() const { return most_; }

 private:
  std::vector<std::size_t> out_;  // by moment
  std::size_t most_ = 0;
};

// Of the cheapest way to cut the lengths up to this one into classes, the last class.
struct Cut {
  std::size_t bytes = 0;  // of all slots
  std::size_t first = 0;
  std::size_t slots = 0;
};

}  // namespace

std::vector<SlotClass> slot_classes(std::vector<SlotDemand> demands,
                                    std::optional<std::int64_t> budget_bytes) {
  int moments = 0;
  for (const SlotDemand& demand : demands) moments = std::max(moments, demand.out.until);
  const std::vector<Length> lengths = lengths_of(std::move(demands));
  std::vector<Cut> cuts(lengths.size());
  for (std::size_t last = 0; last < lengths.size(); ++last) {
    Overlap overlap(moments);
    std::int64_t least_counted_bytes = lengths[last].least_counted_bytes;
    cuts[last].bytes = std::numeric_limits<std::size_t>::max();
    for (std::size_t first = last + 1; first-- > 0;) {
      for (const Moments& block : lengths[first].out) overlap.add(block);
      least_counted_bytes = std::min(least_counted_bytes, lengths[first].least_counted_bytes);
      std::size_t slots = overlap.most();
      if (budget_bytes) {
        slots = std::min(slots, static_cast<std::size_t>(std::max<std::int64_t>(*budget_bytes, 0) /
                                                         least_counted_bytes));
      }
      // Nor would more lengths take less.
      if (slots * lengths[last].bytes >= cuts[last].bytes) break;
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
