#include "traces/profile_clocks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rrfp {

namespace {

/// Sums of offsets between clocks of different epochs.
__extension__ using Wide = __int128;

constexpr Wide kFar = Wide{1} << 100;

/// One bound for each pair that has any.
std::vector<ClockBound> tightest(const std::vector<ClockBound>& bounds) {
  std::map<std::pair<int, int>, ClockBound> of_pair;
  for (ClockBound bound : bounds) {
    if (bound.from > bound.to) {
      bound = {bound.to, bound.from, -bound.most_ns, -bound.least_ns};
    }
    const auto [at, added] = of_pair.emplace(std::pair(bound.from, bound.to), bound);
    at->second.least_ns = std::max(at->second.least_ns, bound.least_ns);
    at->second.most_ns = std::min(at->second.most_ns, bound.most_ns);
  }
  std::vector<ClockBound> all;
  for (const auto& [pair, bound] : of_pair) all.push_back(bound);
  return all;
}

class Aligner {
 public:
  Aligner(int clocks, std::vector<ClockBound> bounds)
      : clocks_(static_cast<std::size_t>(clocks)), bounds_(std::move(bounds)) {}

  bool holds_as_recorded(std::int64_t slack_ns) const {
    return std::all_of(bounds_.begin(), bounds_.end(), [&](const ClockBound& bound) {
      return bound.least_ns - slack_ns <= 0 && bound.most_ns + slack_ns >= 0;
    });
  }

  /// The most that each offset can be (or, mirrored, minus the least), counted
  /// from the first clock of its component. False where the bounds contradict
  /// one another.
  bool most(std::int64_t slack_ns, bool mirrored, std::vector<Wide>* distances) const {
    distances->assign(clocks_, kFar);
    for (std::size_t clock = 0; clock < clocks_; ++clock) {
      if (root_of(clock) == clock) (*distances)[clock] = 0;
    }
    const auto relax = [&](int from, int to, Wide length_ns) {
      const Wide at = (*distances)[static_cast<std::size_t>(from)];
      Wide& reached = (*distances)[static_cast<std::size_t>(to)];
      if (at == kFar || at + length_ns >= reached) return false;
      reached = at + length_ns;
      return true;
    };
    for (std::size_t round = 0; round <= clocks_; ++round) {
      bool changed = false;
      for (const ClockBound& bound : bounds_) {
        const Wide up = Wide{mirrored ? -bound.least_ns : bound.most_ns} + slack_ns;
        const Wide down = Wide{mirrored ? bound.most_ns : -bound.least_ns} + slack_ns;
        changed = relax(bound.from, bound.to, up) || changed;
        changed = relax(bound.to, bound.from, down) || changed;
      }
      if (!changed) return true;
    }
    return false;
  }

  void find_roots() {
    roots_.resize(clocks_);
    for (std::size_t clock = 0; clock < clocks_; ++clock) roots_[clock] = clock;
    for (bool changed = true; changed;) {
      changed = false;
      for (const ClockBound& bound : bounds_) {
        std::size_t& a = roots_[static_cast<std::size_t>(bound.from)];
        std::size_t& b = roots_[static_cast<std::size_t>(bound.to)];
        if (a == b) continue;
        a = b = std::min(a, b);
        changed = true;
      }
    }
    tied_.assign(clocks_, false);
    for (const ClockBound& bound : bounds_) {
      tied_[static_cast<std::size_t>(bound.from)] = tied_[static_cast<std::size_t>(bound.to)] =
          true;
    }
  }
  std::size_t root_of(std::size_t clock) const { return roots_[clock]; }
  bool tied(std::size_t clock) const { return tied_[clock]; }

 private:
  std::size_t clocks_;
  std::vector<ClockBound> bounds_;
  std::vector<std::size_t> roots_;  ///< the first clock of its component
  std::vector<bool> tied_;
};

}  // namespace

AlignedClocks align_clocks(int clocks, const std::vector<ClockBound>& bounds,
                           std::int64_t grain_ns) {
  Aligner aligner(clocks, tightest(bounds));
  aligner.find_roots();
  AlignedClocks out;
  out.moved = !aligner.holds_as_recorded(grain_ns);
  std::int64_t slack_ns = grain_ns;
  std::vector<Wide> most;
  std::vector<Wide> least;
  while (!aligner.most(slack_ns, false, &most)) slack_ns = std::max<std::int64_t>(1, slack_ns * 2);
  // Bounds that hold together one way hold together the other way.
  aligner.most(slack_ns, true, &least);
  out.contradiction_ns = slack_ns > grain_ns ? slack_ns : 0;
  for (std::size_t clock = 0; clock < static_cast<std::size_t>(clocks); ++clock) {
    AlignedClocks::Clock& aligned = out.clocks.emplace_back();
    if (!aligner.tied(clock)) continue;
    if (clock > 0 && aligner.root_of(clock) == clock) continue;
    const Wide low = -least[clock];
    const Wide high = most[clock];
    if (out.moved) aligned.offset_ns = static_cast<std::int64_t>(low + (high - low) / 2);
    aligned.error_ns = static_cast<std::int64_t>(
        std::max<Wide>({0, high - aligned.offset_ns, aligned.offset_ns - low}));
  }
  return out;
}

}  // namespace rrfp
