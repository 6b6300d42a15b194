#include "traces/episode_timeline.h"

#include <algorithm>

#include "traces/saturating.h"

namespace rrfp {

namespace {

constexpr int kCyclesPerEra = 1024;
constexpr std::uint64_t kMostCyclesPerEra = std::uint64_t{64} * kCyclesPerEra;
constexpr double kMostEraNs = 0x1p61;

// Lanes of the draws of one cycle.
enum Lane : std::uint64_t { kOff, kOn, kRest, kCycles, kCount, kJobStart, kFirstHit };

std::int64_t draw_below(std::uint64_t bits, std::int64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::int64_t>((Wide{bits} * static_cast<std::uint64_t>(bound)) >> 64);
}

int draw_between(std::uint64_t bits, int least, int most) {
  return least + static_cast<int>(draw_below(bits, std::int64_t{most} - least + 1));
}

}  // namespace

bool Episode::hits(int element) const {
  return hit.empty() || std::binary_search(hit.begin(), hit.end(), element);
}

EpisodeTimeline::EpisodeTimeline(const Episodes& episodes, int elements, std::uint64_t seed,
                                 std::uint64_t purpose)
    : episodes_(episodes),
      on_(episodes.on_ns),
      off_(episodes.off_ns),
      rest_(episodes.rest_ns),
      elements_(std::max(elements, 1)),
      seed_(seed),
      purpose_(purpose) {
  double quiet_ns = off_.mean();
  if (episodes.most_cycles > 0) {
    const double cycles = (episodes.least_cycles + episodes.most_cycles) / 2.0;
    quiet_ns += (rest_.mean() - off_.mean()) / cycles;
  }
  cycle_ns_ = std::max(1.0, on_.mean() + quiet_ns);
  era_ns_ = rounded_ns(std::min(kMostEraNs, kCyclesPerEra * cycle_ns_));
  const DrawSeries job(DrawKey{seed_, ~std::uint64_t{0}, purpose_, 0});
  first_ns_ = draw_below(job.bits(0, kJobStart), era_ns_);
  share_ = std::min(1.0, on_.mean() / cycle_ns_);
  if (episodes.element != EpisodeElement::kAll) {
    share_ *= std::min(1.0, (episodes.least_hit + episodes.most_hit) / 2.0 / elements_);
  }
}

std::vector<Episode> EpisodeTimeline::overlapping(std::int64_t begin_ns,
                                                  std::int64_t end_ns) const {
  std::vector<Episode> found;
  const std::int64_t begin = capped_sum(begin_ns, first_ns_);
  const std::int64_t end = capped_sum(end_ns, first_ns_);
  for (std::int64_t era = begin / era_ns_; era <= (end - 1) / era_ns_; ++era) {
    add_era(era, begin, end, found);
  }
  for (Episode& episode : found) {
    episode.begin_ns -= first_ns_;
    episode.end_ns -= first_ns_;
  }
  return found;
}

void EpisodeTimeline::add_era(std::int64_t era, std::int64_t begin_ns, std::int64_t end_ns,
                              std::vector<Episode>& out) const {
  const DrawSeries draws(DrawKey{seed_, static_cast<std::uint64_t>(era), purpose_, 0});
  const std::int64_t era_end_ns = capped_product(era_ns_, era + 1);
  std::int64_t now_ns = era_ns_ * era;
  int left = 0;  // cycles until a rest
  for (std::uint64_t cycle = 0; cycle < kMostCyclesPerEra; ++cycle) {
    const bool rests = episodes_.most_cycles > 0 && left == 0;
    if (rests) {
      left =
          draw_between(draws.bits(cycle, kCycles), episodes_.least_cycles, episodes_.most_cycles);
    }
    --left;
    const double quiet_ns =
        rests ? rest_.at(draws.bits(cycle, kRest)) : off_.at(draws.bits(cycle, kOff));
    const std::int64_t from_ns = capped_sum(now_ns, rounded_ns(quiet_ns));
    if (from_ns >= std::min(era_end_ns, end_ns)) return;
    now_ns = capped_sum(from_ns, rounded_ns(on_.at(draws.bits(cycle, kOn))));
    if (now_ns <= begin_ns || now_ns == from_ns) continue;
    Episode episode{from_ns,
                    std::min(now_ns, era_end_ns),
                    static_cast<std::uint64_t>(era) * kMostCyclesPerEra + cycle,
                    {}};
    if (episodes_.element != EpisodeElement::kAll) episode.hit = draw_hits(draws, cycle);
    out.push_back(std::move(episode));
  }
}

// Floyd's sampling without replacement (Bentley and Floyd, CACM 30(9), 1987).
std::vector<int> EpisodeTimeline::draw_hits(const DrawSeries& draws, std::uint64_t cycle) const {
  const int count = std::min(
      elements_, draw_between(draws.bits(cycle, kCount), episodes_.least_hit, episodes_.most_hit));
  std::vector<int> hit;
  for (int last = elements_ - count; last < elements_; ++last) {
    const auto lane = kFirstHit + static_cast<std::uint64_t>(last);
    const int one = draw_between(draws.bits(cycle, lane), 0, last);
    const bool taken = std::find(hit.begin(), hit.end(), one) != hit.end();
    hit.push_back(taken ? last : one);
  }
  std::sort(hit.begin(), hit.end());
  return hit;
}

}  // namespace rrfp
