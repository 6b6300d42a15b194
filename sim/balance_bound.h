// How short an iteration could be if its microbatches were spread perfectly
// over the replicas: a bound that no arrangement and no schedule beats.
//
// On each rank, some replica has at least the mean of the work that all
// replicas have there. Before it, the rank waits at least for the quickest
// forward of any microbatch to come to it; after it, where the backward is not
// split, the quickest backward has yet to go back to the first stage.
//
// Thread safety: as a container.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/case.h"

namespace rrfp {

class BalanceBound {
 public:
  /// One replica of the iteration. REQUIRES: the same program each time, but
  /// for what is fused.
  void add(const Case& replica);

  /// By rank: no run of all replicas ends earlier there, counted from the
  /// start of its tasks. REQUIRES: add() was called.
  std::vector<std::int64_t> end_ns() const;
  /// The same without what comes before and after: the mean work alone.
  std::vector<std::int64_t> work_ns() const;

 private:
  struct Rank {
    std::int64_t work_ns = 0;  ///< of all replicas
    std::int64_t before_ns = 0;
    std::int64_t after_ns = 0;
  };

  std::int64_t replicas_ = 0;
  int first_rank_ = -1;  ///< of the one root stage; -1: there are several
  std::vector<Rank> ranks_;
};

}  // namespace rrfp
