// When the episodes of a model are, and which ranks or links each hits. Any
// stretch of time can be asked for by itself.
//
// Invariants
//  1. The answer depends on seed, purpose and the episodes' description alone.
//  2. Time is cut into eras of about 1024 cycles. Each era is drawn by itself,
//     beginning with a quiet time; an episode that reaches past its era is cut.
//  3. A job begins at a random time of the first era, so that what is seen is
//     not always a beginning.
//
// Thread safety: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler_core/random.h"
#include "traces/distribution.h"
#include "traces/variability.h"

namespace rrfp {

struct Episode {
  std::int64_t begin_ns = 0;  ///< on the axis of the job
  std::int64_t end_ns = 0;    ///< not included
  std::uint64_t number = 0;   ///< differs between any two episodes of a timeline
  std::vector<int> hit;       ///< elements, ascending; empty where all are hit

  bool hits(int element) const;
};

class EpisodeTimeline {
 public:
  /// `elements`: how many there are to be hit. `seed` and `purpose` as in
  /// DrawKey; lanes of its draws are its own.
  EpisodeTimeline(const Episodes& episodes, int elements, std::uint64_t seed,
                  std::uint64_t purpose);

  /// Those that overlap [begin, end), by time.
  std::vector<Episode> overlapping(std::int64_t begin_ns, std::int64_t end_ns) const;

  /// How long a cycle takes in the long run, at least 1 ns.
  double cycle_ns() const { return cycle_ns_; }

  /// For what part of the time an element is hit, in the long run.
  double share() const { return share_; }

 private:
  void add_era(std::int64_t era, std::int64_t begin_ns, std::int64_t end_ns,
               std::vector<Episode>& out) const;
  std::vector<int> draw_hits(const DrawSeries& draws, std::uint64_t cycle) const;

  Episodes episodes_;
  Sampler on_;
  Sampler off_;
  Sampler rest_;
  int elements_ = 1;
  std::uint64_t seed_ = 0;
  std::uint64_t purpose_ = 0;
  double cycle_ns_ = 1;
  std::int64_t era_ns_ = 1;
  std::int64_t first_ns_ = 0;  // of the job, in the first era
  double share_ = 0;
};

}  // namespace rrfp
