// What the parts of an iteration's loop have in common when they write letters.
//
// Thread safety: pure functions.
#pragma once

#include "executor/iteration_loop.h"

namespace rrfp {

/// Of this worker, in its iteration; has yet to be addressed.
inline Letter letter_of(const LoopContext& context, Tag tag) {
  Letter letter;
  letter.tag = tag;
  letter.iteration = context.iteration;
  letter.lane = context.place.lane;
  return letter;
}

/// The endpoint of a rank and lane of the same replica.
inline int peer_of(const LoopContext& context, int rank, int lane) {
  return context.grid.endpoint({context.place.replica, rank, lane});
}

}  // namespace rrfp
